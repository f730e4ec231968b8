"""Scaling laws, compute-optimal sizes, law fits, loss curves."""

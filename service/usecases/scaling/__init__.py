"""Compute-optimal sizes, law fits, loss curves."""

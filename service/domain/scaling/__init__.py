"""Scaling laws, fits, compute-optimal answers, loss curves."""

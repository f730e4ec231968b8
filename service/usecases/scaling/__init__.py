"""Compute-optimal models, fits of scaling laws, and loss curves."""

"""Scaling laws, fits, optima and loss curves."""

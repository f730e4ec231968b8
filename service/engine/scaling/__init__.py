"""Scaling laws: optimal sizes, fits, experiment design, loss curves."""

"""Endpoints of compute-optimal sizes, law fits and loss curves."""

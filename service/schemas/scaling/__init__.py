"""Schemas of compute-optimal requests, law fits and loss curves."""

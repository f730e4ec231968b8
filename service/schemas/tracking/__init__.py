"""Schemas of tracked programs."""

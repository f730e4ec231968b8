"""Endpoints of tracked programs."""

"""Scenarios and their chunks."""

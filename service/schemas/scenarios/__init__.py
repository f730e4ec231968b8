"""Schemas of scenarios."""

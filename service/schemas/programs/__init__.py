"""Schemas of programs."""

"""Schemas of estimates."""

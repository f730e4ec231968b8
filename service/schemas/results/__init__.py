"""Schemas of kept results, and the kinds of question whose answers are kept."""

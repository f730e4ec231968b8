"""Schemas of comparisons and approaches."""

"""Endpoints of comparisons and approaches."""

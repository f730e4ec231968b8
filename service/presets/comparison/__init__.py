"""Defaults of comparisons, costs of ownership, approaches."""

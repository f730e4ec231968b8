"""Defaults of comparisons, ownership costs, approaches."""

"""The same workload on every matching offer."""

"""Comparison of a workload on every matching offer and on owned hardware, and of approaches to a task."""

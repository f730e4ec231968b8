"""Compared options, owned clusters, and approaches to a task."""

"""Accelerators, networks, regions and power."""

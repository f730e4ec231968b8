"""Accelerators, nodes and where they stand: how many, of which part, and what takes them away."""

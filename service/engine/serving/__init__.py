"""Inference: configurations and fleets."""

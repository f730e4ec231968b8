"""Inference: memory, roofline, configurations, fleets."""

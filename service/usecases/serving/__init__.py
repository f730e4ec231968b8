"""Serving of a model: the cheapest configuration, its costs, and ways to reduce them."""

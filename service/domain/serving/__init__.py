"""A model in service: requirements and answers."""

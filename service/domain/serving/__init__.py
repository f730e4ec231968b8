"""A model in service: what is asked of it and what it costs."""

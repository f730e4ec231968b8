"""The HTTP layer that all resources share."""

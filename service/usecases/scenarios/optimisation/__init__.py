"""The search for the best option within constraints."""

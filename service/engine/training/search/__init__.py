"""The search over parallel layouts."""

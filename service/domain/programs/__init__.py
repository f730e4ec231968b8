"""Training programs and their answers."""

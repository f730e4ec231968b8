"""A training program in calendar time."""

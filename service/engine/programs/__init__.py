"""The budget of a training program."""

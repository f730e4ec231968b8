"""The state of a tracked program, computed from its events."""

"""Archiving of closed programs: their single events in a file, and back."""

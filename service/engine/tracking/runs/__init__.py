"""A run from its events: rollups, history, surviving line, progress and metrics."""

"""Questions in words: read with the names that are known now, and answered by the use case they ask for."""

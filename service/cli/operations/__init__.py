"""Commands for the machine that the service runs on: its keys and its measurement."""

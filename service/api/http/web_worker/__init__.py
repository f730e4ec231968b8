"""The web server's worker: how requests arrive and wait for their turn, and how it ends."""

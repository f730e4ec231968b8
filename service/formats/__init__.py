"""Bytes and other people's formats into the domain, and back: no database, no HTTP."""

"""Benchmarks and the accuracy score; not part of the service."""

"""Endpoints for operators and the documentation."""

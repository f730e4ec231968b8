"""Endpoints of estimates."""

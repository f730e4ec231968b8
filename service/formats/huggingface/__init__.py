"""Hugging Face `config.json` files."""

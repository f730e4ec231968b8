"""The price snapshot that ships in `providers/data`, built from catalogue files: `python -m tools.snapshot_build FOLDER`."""

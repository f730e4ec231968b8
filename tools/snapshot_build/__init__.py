"""Build the price snapshot that ships in `providers/data` from a folder of catalogue files: `python -m tools.snapshot_build FOLDER`."""

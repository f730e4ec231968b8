"""Pure sums over frozen dataclasses and numpy arrays: no clock, no network, no files, no hidden randomness."""

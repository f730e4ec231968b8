"""Pages of docs/reference, written from what they describe: `python -m tools.reference`, part of `make readme`."""

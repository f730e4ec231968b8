"""The time of one optimizer step."""

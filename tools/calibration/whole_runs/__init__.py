"""Whole published runs: what they lost beyond their steps and failures, and the hours planned for them."""

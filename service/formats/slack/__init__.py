"""Slack messages: cards in Block Kit, and the picture of their range."""

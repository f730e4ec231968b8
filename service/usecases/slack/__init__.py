"""Slack: which team a channel acts for, and messages to the addresses that Slack names for answers."""

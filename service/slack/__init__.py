"""The Slack app: signed commands and buttons, answered to the response URL with cards."""

"""Messages to addresses that callers name: which are allowed, and how they are signed, sent and retried."""

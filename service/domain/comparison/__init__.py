"""Options that are compared, owned hardware, approaches."""

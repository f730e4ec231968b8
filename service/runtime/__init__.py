"""Processes: server, worker, broker, logs, outgoing messages."""

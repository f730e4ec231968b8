"""The state of all prices: price books, snapshots, precedence, the catalog."""

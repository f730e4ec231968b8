"""Price snapshots, price books, price history."""

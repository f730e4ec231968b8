"""Price sources: refresh, ingest, lists."""

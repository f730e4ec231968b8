"""One file a schema change, applied by `service.store`."""

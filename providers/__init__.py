"""Price sources: one small file each, behind the interface of `providers.offer`."""

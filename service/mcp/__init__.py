"""Tools and resources for assistants by the Model Context Protocol: one more door to the same use cases, here or on a server."""

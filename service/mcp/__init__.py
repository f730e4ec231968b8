"""Tools and resources for assistants by the Model Context Protocol: the same use cases, here or on a server."""

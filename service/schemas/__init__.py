"""Request and answer schemas and presenters, shared by HTTP and the command line."""

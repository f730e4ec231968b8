"""What serving a model takes and costs."""

"""Figures that change with the world, not with the code: data files, each row with its source, and their loaders."""

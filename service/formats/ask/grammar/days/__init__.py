"""Days and times: starts, deadlines, and those that are of no run."""

"""Training programs: budget, schedule, documents."""

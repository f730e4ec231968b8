"""Background work: the Celery application, its tasks and its clock. Tasks stay thin; the use cases do the work."""

"""Commands that answer a question: what a run, a program, a fleet or a model takes and costs."""

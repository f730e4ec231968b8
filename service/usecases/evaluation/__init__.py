"""Evaluation of a run or a program: suites with their cost and time, checks, sign-offs, and what the suites can detect."""

"""Reinforcement learning: lengths of answers, their generation, and the phases of a step."""

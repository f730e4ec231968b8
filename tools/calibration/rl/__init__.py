"""Reinforcement learning: published steps as inputs of the engine, and the fit of its rates."""

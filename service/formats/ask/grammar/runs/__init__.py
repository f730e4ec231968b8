"""What is trained: data, batches, and the parts that models of distillation and reinforcement learning take."""

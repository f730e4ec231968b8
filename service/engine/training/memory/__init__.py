"""Memory of training on one device: weights and states, activations, and what fine-tuning needs."""

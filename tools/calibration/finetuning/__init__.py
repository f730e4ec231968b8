"""Fine-tuning: published jobs as questions to the engine, and the fit of what its software takes beyond pre-training's."""

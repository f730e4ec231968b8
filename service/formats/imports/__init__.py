"""Files of other tools: FOCUS bills, Slurm accounting, MLflow, Weights & Biases, DCGM."""

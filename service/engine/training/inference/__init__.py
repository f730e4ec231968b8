"""A pass through a served or sampling model: its quantities, memory and roofline; serving and RL share it."""

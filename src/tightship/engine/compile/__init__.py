"""Models compiled for input shapes: lowered, planned and ready to load."""

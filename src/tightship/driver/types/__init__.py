"""Data of the driver and the rules that hold of it without any message or effect."""

"""Data of the driver, and the rules that need no message or effect."""

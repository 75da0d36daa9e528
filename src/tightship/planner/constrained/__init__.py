"""Plans problems with constraints: places items in order, then searches for better plans."""

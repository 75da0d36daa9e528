"""Plans of problems with constraints: placed as items, and searched for."""

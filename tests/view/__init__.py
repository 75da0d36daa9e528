"""Pictures, tables and reports of plans."""

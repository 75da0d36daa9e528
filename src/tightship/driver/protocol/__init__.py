"""Calls, replies and their encodings."""

"""Calls and answers, and their bytes."""

"""Execution of a program in its arena."""

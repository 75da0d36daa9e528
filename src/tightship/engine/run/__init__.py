"""Runs of a program in its arena."""

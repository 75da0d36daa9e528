"""Passes over the steps of a lowered program."""

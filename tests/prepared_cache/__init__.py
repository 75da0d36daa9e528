"""Prepared models of one user."""

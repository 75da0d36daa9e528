"""Draws pictures, tables and reports from plain data; lower layers do not draw themselves."""

"""Decoders whose caches have a fixed number of rows, and whose past length is data."""

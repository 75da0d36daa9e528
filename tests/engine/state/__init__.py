"""Tests of decoders with fixed caches."""

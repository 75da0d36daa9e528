"""Tests of prepared models in their files."""

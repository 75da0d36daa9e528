"""Builds and checks the files of a release: an sdist and wheels. Nothing is uploaded."""

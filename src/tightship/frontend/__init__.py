"""Foreign models as graphs; each frontend imports its framework when it reads."""

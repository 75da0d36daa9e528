"""Memory plans of lowered programs: where each byte lies, and what the process holds besides."""

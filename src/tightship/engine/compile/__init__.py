"""Models compiled for lengths: read, lowered, planned and packed into what runs."""

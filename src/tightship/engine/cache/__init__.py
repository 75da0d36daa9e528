"""Programs by input shapes, evicted by bytes."""

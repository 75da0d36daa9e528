"""Cache of programs by input shapes, evicted by bytes."""

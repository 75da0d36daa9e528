"""Models that a driver holds: made ready from what clients send, and run on pools and buffers."""

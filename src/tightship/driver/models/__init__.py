"""Models of a driver: loaded from what clients send, and run on pools and buffers."""

"""State machine of the driver: calls and events in, replies and effects out; no input or output."""

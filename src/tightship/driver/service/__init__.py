"""The driver's state machine: calls and events in, replies and effects out; no input or output."""

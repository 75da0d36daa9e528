"""The native core under sanitizers."""

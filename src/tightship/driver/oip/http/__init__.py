"""Open Inference Protocol, version 2, over HTTP, and the live page."""

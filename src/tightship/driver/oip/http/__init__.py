"""Version 2 of the Open Inference Protocol over HTTP, and the live page."""

"""The Open Inference Protocol, version 2, over HTTP: models for clients of Triton."""

"""Admission of clients by HTTP and gRPC: tokens, and certificates of TLS."""

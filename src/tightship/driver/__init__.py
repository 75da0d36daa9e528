"""Models and tensors shared between processes, by NNAPI's rules."""

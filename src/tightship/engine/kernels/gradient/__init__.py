"""NumPy kernels of the operators of gradients."""

"""NumPy kernels of the operators that gradients are written with."""

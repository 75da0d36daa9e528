"""Models to run: the light models of the onnx package, and networks as people export them."""

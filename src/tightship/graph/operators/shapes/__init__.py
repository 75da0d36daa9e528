"""Shapes of outputs from shapes of inputs, by operator; dimensions may be symbolic lengths."""

"""Layers of a decoder whose tokens see a window of keys, and how these rotate."""

from dataclasses import dataclass

from tightship.frontend.gguf.metadata import Metadata
from tightship.frontend.gguf.rotary import Rotary

WINDOW, PATTERN, BASE = (
    "attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"
)  # fmt: skip
GEMMA_PERIOD = 6
"""Layers of Gemma 3 of which the last sees all keys."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of some layers.

    Attributes:
        keys: Most keys that a token sees, its own included; 0 if no layer has a window.
        layers: Whether each layer has one.
        rotary: Rotation in these layers.
    """

    keys: int
    layers: tuple[bool, ...]
    rotary: Rotary

    def of(self, layer: int) -> int:
        """Return the keys that a token of a layer sees; 0 for all."""
        return self.keys if self.layers[layer] else 0


def read_windows(metadata: Metadata, layers: int, rotary: Rotary, *, is_gemma: bool) -> Windows:
    """Read the windows of all layers, or of most in Gemma.

    Args:
        metadata: Metadata of the architecture.
        layers: Number of layers.
        rotary: Rotation of layers without a window.
        is_gemma: Whether every sixth layer sees all keys, and the others rotate without scaling.

    Raises:
        FormatError: A value does not fit.
    """
    if not metadata.has(WINDOW) or metadata.fields[metadata.named(WINDOW)] == 0:
        return Windows(0, (False,) * layers, rotary)
    keys = metadata.integer(WINDOW)
    if not is_gemma:
        return Windows(keys, (True,) * layers, rotary)
    own = Rotary(rotary.length, metadata.number(BASE, 10_000.0), 1.0, rotary.are_neighbours)
    listed = metadata.list_of_integers(PATTERN)
    if listed is None:
        period = metadata.integer(PATTERN, GEMMA_PERIOD)
        listed = tuple(int(layer % period < period - 1) for layer in range(layers))
    if len(listed) != layers:
        raise metadata.refusal(
            PATTERN, f"{len(listed)} truth values", f"one for each of {layers} layers"
        )
    return Windows(keys, tuple(map(bool, listed)), own)

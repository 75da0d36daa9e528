"""STFT: spectra of frames of a signal, by NumPy's transforms."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Node


def stft(node: Node, _: MakeRun) -> ReferenceRun:
    """Make the node ready to run, on frames that lie whole in the signal, times the window."""
    one_sided = bool(node.attributes.get("onesided", 1))

    def run(operands: Sequence[Any]) -> list[Any]:
        signal, step, window, length = (*operands, None, None)[:4]
        size = int(np.asarray(length).reshape(())) if length is not None else window.shape[0]
        whole = signal[..., 0] if signal.ndim == 3 and signal.shape[-1] == 1 else signal
        if signal.ndim == 3 and signal.shape[-1] == 2:
            whole = signal[..., 0] + 1j * signal[..., 1]
        pieces = np.lib.stride_tricks.sliding_window_view(whole, size, -1)
        pieces = pieces[:, :: int(np.asarray(step).reshape(()))]
        if window is not None:
            pieces = pieces * window
        is_real = one_sided and not np.iscomplexobj(pieces)
        found = (np.fft.rfft if is_real else np.fft.fft)(pieces, axis=-1)
        return [np.stack([found.real, found.imag], -1).astype(signal.dtype)]

    return run

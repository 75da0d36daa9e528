"""One time step of an RNN, GRU or LSTM, and its activations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.graph import Node

Activation = Callable[[Array, Array], None]
"""Function that overwrites its first array; the second, of the same shape, is scratch."""

_MakeActivation = Callable[[float, float], Activation]


def _sigmoid(_alpha: float, _beta: float) -> Activation:
    def run(x: Array, _: Array) -> None:
        np.multiply(x, -1, out=x)
        np.exp(x, out=x)
        np.add(x, 1, out=x)
        np.reciprocal(x, out=x)

    return run


def _tanh(alpha: float, beta: float) -> Activation:
    def run(x: Array, _: Array) -> None:
        np.multiply(x, beta, out=x)
        np.tanh(x, out=x)
        np.multiply(x, alpha, out=x)

    return run


def _rectifier(scale: float, negative: Callable[..., Array] | None) -> Activation:
    """Make max(x, 0), plus `negative` of min(x, 0) times `scale`."""

    def run(x: Array, t: Array) -> None:
        if negative is not None:
            np.minimum(x, 0, out=t)
            negative(t, out=t)
            np.multiply(t, scale, out=t)
        np.maximum(x, 0, out=x)
        if negative is not None:
            np.add(x, t, out=x)

    return run


def _affine(alpha: float, beta: float) -> Activation:
    def run(x: Array, _: Array) -> None:
        np.multiply(x, alpha, out=x)
        np.add(x, beta, out=x)

    return run


def _hard_sigmoid(alpha: float, beta: float) -> Activation:
    linear = _affine(alpha, beta)

    def run(x: Array, t: Array) -> None:
        linear(x, t)
        np.clip(x, 0, 1, out=x)

    return run


def _thresholded(alpha: float, _beta: float) -> Activation:
    def run(x: Array, t: Array) -> None:
        np.greater(x, alpha, out=t)
        np.multiply(x, t, out=x)

    return run


def _softsign(x: Array, t: Array) -> None:
    np.absolute(x, out=t)
    np.add(t, 1, out=t)
    np.divide(x, t, out=x)


def _softplus(x: Array, _: Array) -> None:
    np.logaddexp(x, 0, out=x)


@dataclass(frozen=True, slots=True)
class _Form:
    """Activation with the defaults of its parameters; None for a parameter that it lacks."""

    make: _MakeActivation
    alpha: float | None = None
    beta: float | None = None


_FORMS: Mapping[str, _Form] = {
    "affine": _Form(_affine, 1.0, 0.0),
    "elu": _Form(lambda alpha, _: _rectifier(alpha, np.expm1), 1.0),
    "hardsigmoid": _Form(_hard_sigmoid, 0.2, 0.5),
    "leakyrelu": _Form(lambda alpha, _: _rectifier(alpha, np.positive), 0.01),
    "relu": _Form(lambda _alpha, _beta: _rectifier(0.0, None)),
    "scaledtanh": _Form(_tanh, 1.0, 1.0),
    "sigmoid": _Form(_sigmoid),
    "softplus": _Form(lambda _alpha, _beta: _softplus),
    "softsign": _Form(lambda _alpha, _beta: _softsign),
    "tanh": _Form(lambda _alpha, _beta: _tanh(1.0, 1.0)),
    "thresholdedrelu": _Form(_thresholded, 1.0),
}


def activations(
    context: KernelContext, defaults: tuple[str, ...], directions: int
) -> list[Activation]:
    """Make the activations of every direction, in order."""
    named = named_activations(context.node, defaults * directions)
    require(named is not None)
    return [_FORMS[name].make(alpha, beta) for name, alpha, beta in named or ()]


def named_activations(
    node: Node, defaults: tuple[str, ...]
) -> list[tuple[str, float, float]] | None:
    """Return name, alpha and beta of every activation of a node; None if one is unknown.

    Each parameter list is consumed in order by the activations that have the parameter.
    """
    given = node.attributes.get("activations", defaults)
    assert isinstance(given, tuple)
    names = [str(name).lower() for name in given]
    if len(names) != len(defaults) or not all(name in _FORMS for name in names):
        return None
    alphas, betas = _numbers(node, "activation_alpha"), _numbers(node, "activation_beta")
    found = []
    for name in names:
        form = _FORMS[name]
        alpha = alphas.pop(0) if form.alpha is not None and alphas else form.alpha
        beta = betas.pop(0) if form.beta is not None and betas else form.beta
        found.append((name, alpha or 0.0, beta or 0.0))
    return found


def _numbers(node: Node, name: str) -> list[float]:
    values = node.attributes.get(name, ())
    assert isinstance(values, tuple)
    return [float(value) for value in values]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of one direction, transposed: (input, gates) and (hidden, gates)."""

    input: Array
    hidden: Array
    bias: Array | None
    """Biases of the input and of the hidden state, (2, gates)."""
    peephole: Array | None
    """Peepholes, (3, hidden): input, output, forget."""


@dataclass(frozen=True, slots=True)
class State:
    """Arrays that a step reads (`h`, `c`), writes (`new_h`, `new_c`), and uses as scratch."""

    h: Array
    c: Array
    new_h: Array
    new_c: Array
    gates: Array
    from_hidden: Array
    t: Array


@dataclass(frozen=True, slots=True)
class Cell:
    """Settings of one direction's steps."""

    functions: list[Activation]
    clip: float
    flag: bool
    """`linear_before_reset` of a GRU, `input_forget` of an LSTM."""

    def activate(self, index: int, x: Array, t: Array) -> None:
        """Clip, then apply an activation."""
        if self.clip > 0:
            np.clip(x, -self.clip, self.clip, out=x)
        self.functions[index](x, t)


Step = Callable[[Cell, Array, Weights, State], None]
"""Function that computes `new_h` and `new_c` from `h`, `c` and one time's input."""


def _add_biases(target: Array, weights: Weights, gates: slice) -> None:
    if weights.bias is not None:
        np.add(target, weights.bias[0, gates], out=target)
        np.add(target, weights.bias[1, gates], out=target)


def rnn_step(cell: Cell, x: Array, weights: Weights, state: State) -> None:
    """Compute `f(x W + h R + biases)`."""
    np.matmul(x, weights.input, out=state.new_h)
    np.matmul(state.h, weights.hidden, out=state.from_hidden)
    np.add(state.new_h, state.from_hidden, out=state.new_h)
    _add_biases(state.new_h, weights, slice(None))
    cell.activate(0, state.new_h, state.t)


def gru_step(cell: Cell, x: Array, weights: Weights, state: State) -> None:
    """Step with gates in the order update, reset, candidate."""
    size = state.h.shape[1]
    both, last = slice(0, 2 * size), slice(2 * size, 3 * size)
    np.matmul(x, weights.input, out=state.gates)
    np.matmul(state.h, weights.hidden[:, both], out=state.from_hidden[:, both])
    np.add(state.gates[:, both], state.from_hidden[:, both], out=state.gates[:, both])
    _add_biases(state.gates[:, both], weights, both)
    update, reset, new = state.gates[:, :size], state.gates[:, size : 2 * size], state.new_h
    cell.activate(0, update, state.t)
    cell.activate(0, reset, state.t)
    if cell.flag:
        np.matmul(state.h, weights.hidden[:, last], out=new)
        if weights.bias is not None:
            np.add(new, weights.bias[1, last], out=new)
        np.multiply(new, reset, out=new)
    else:
        np.multiply(reset, state.h, out=state.t)
        np.matmul(state.t, weights.hidden[:, last], out=new)
        if weights.bias is not None:
            np.add(new, weights.bias[1, last], out=new)
    if weights.bias is not None:
        np.add(new, weights.bias[0, last], out=new)
    np.add(new, state.gates[:, last], out=new)
    cell.activate(1, new, state.t)
    np.subtract(state.h, new, out=state.t)
    np.multiply(state.t, update, out=state.t)
    np.add(new, state.t, out=new)


def lstm_step(cell: Cell, x: Array, weights: Weights, state: State) -> None:
    """Step with gates in the order input, output, forget, cell.

    Gates are clipped, the cell state is not: the standard clips "the input of activations", which
    is read as onnxruntime does.
    """
    size = state.h.shape[1]
    np.matmul(x, weights.input, out=state.gates)
    np.matmul(state.h, weights.hidden, out=state.from_hidden)
    np.add(state.gates, state.from_hidden, out=state.gates)
    _add_biases(state.gates, weights, slice(None))
    enter, leave, forget, new = (state.gates[:, k * size : (k + 1) * size] for k in range(4))
    _peep(enter, weights, 0, state.c, state.t)
    cell.activate(0, enter, state.t)
    if cell.flag:
        np.subtract(1, enter, out=forget)
    else:
        _peep(forget, weights, 2, state.c, state.t)
        cell.activate(0, forget, state.t)
    cell.activate(1, new, state.t)
    np.multiply(forget, state.c, out=state.new_c)
    np.multiply(enter, new, out=state.t)
    np.add(state.new_c, state.t, out=state.new_c)
    _peep(leave, weights, 1, state.new_c, state.t)
    cell.activate(0, leave, state.t)
    np.copyto(state.new_h, state.new_c)
    cell.functions[2](state.new_h, state.t)
    np.multiply(state.new_h, leave, out=state.new_h)


def _peep(gate: Array, weights: Weights, index: int, cell_state: Array, t: Array) -> None:
    if weights.peephole is not None:
        np.multiply(cell_state, weights.peephole[index], out=t)
        np.add(gate, t, out=gate)

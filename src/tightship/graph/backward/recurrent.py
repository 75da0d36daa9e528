"""Gradients of LSTM, GRU and RNN: one operator, which reads the states that the forward writes."""

from collections.abc import Iterator

from tightship.graph.backward.gradient_context import GradientContext

_PLAIN = ("activations", "activation_alpha", "activation_beta", "clip", "input_forget", "layout")
"""Attributes that change the network beyond what the gradient covers."""
_LENGTHS, _PEEPHOLES = 4, 7


def recurrent_rule(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Read all operands but lengths, and the states of all times; gates are recomputed."""
    places = (0, 1, 2, 3, 5, 6)
    keep = [at.wants(place) for place in places]
    if not any(keep):
        return
    changed = [name for name in _PLAIN if at.node.attributes.get(name)]
    if _is_known_rnn(at):
        changed = [name for name in changed if name != "activations"]
    if changed or at.has(_LENGTHS) or at.has(_PEEPHOLES):
        raise at.refusal(
            "is known for plain gates only: without lengths of sequences, peepholes, and the "
            f"attributes {', '.join(_PLAIN)}"
        )
    dtype, (times, batch, _) = at.type(at.x(0))
    directions, _, size = at.shape(at.x(2))
    states = at.tape.save(at.node, 0, (dtype, (times, directions, batch, size)))
    gradients = [*at.gradients, "", ""][:3]
    operands = [at.optional(place) for place in places]
    found = at.own(f"{at.node.operator}Grad", *operands, states, *gradients, keep=keep)
    for place, gradient in reversed(list(zip(places, found, strict=True))):
        if gradient:
            yield place, gradient


def _is_known_rnn(at: GradientContext) -> bool:
    """Whether it is an RNN of Tanh or of Relu, whose slopes follow from its states."""
    given = at.node.attributes.get("activations", ())
    assert isinstance(given, tuple)
    return at.node.operator == "RNN" and set(given) in ({"Tanh"}, {"Relu"})

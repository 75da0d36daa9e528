"""Errors for equations that cannot be translated, with the line of the user's source."""

from jax._src import source_info_util
from jax.extend.core import JaxprEqn

from tightship.errors import GraphError

ADVICE = {
    "random_bits": "draw random numbers outside, and pass them in",
    "random_seed": "draw random numbers outside, and pass them in",
    "random_wrap": "draw random numbers outside, and pass them in",
    "threefry2x32": "draw random numbers outside, and pass them in",
    "pure_callback": "compute it before the function, and pass it in",
}


def place_of(equation: JaxprEqn) -> str:
    """Return the user's source line of an equation; empty for jax's own."""
    return str(source_info_util.summarize(equation.source_info))


def refused(equation: JaxprEqn, place: str, why: str) -> GraphError:
    """Return an error with the equation's primitive, source line and a remedy."""
    name = equation.primitive.name
    help_ = ADVICE.get(name, "write it with other operations, or leave it outside the function")
    return GraphError(f"`{name}` ({place}) {why}; {help_}.")

"""Graph of a decoder for a number of new tokens, with caches of a whole context."""

from dataclasses import replace

from tightship.engine.state.capacity import with_capacity
from tightship.engine.state.decoder import Decoder
from tightship.engine.state.file_graphs import PAST
from tightship.engine.state.follow import follow
from tightship.engine.state.last_row import last_row
from tightship.engine.state.stored_caches import store_caches
from tightship.engine.state.writer import Beyond, Extent
from tightship.errors import GraphError
from tightship.graph import Graph


def decoder_graph(decoder: Decoder, steps: int, *, last: bool, few: bool = False) -> Graph:
    """Return the graph for a number of new tokens.

    Args:
        decoder: The decoder.
        steps: New tokens.
        last: Whether logits of the last token are wanted alone.
        few: Whether it may have few of equal layers.

    Raises:
        GraphError: The graph cannot be rewritten for a whole context.
    """
    shapes = decoder.open_shapes(steps)
    try:
        read = decoder.file_graph(steps)
    except GraphError as error:
        raise GraphError(
            f"{error} The graph was read for {PAST} tokens and {steps} new ones; a table of "
            f"the file may have fewer rows than the context of {decoder.context}: ask for a "
            "smaller one."
        ) from None
    if few and read.few is not None:
        read = read.few
        written = tuple(each for each in decoder.caches if each.pair.present in read.outputs)
        decoder = decoder._replace(caches=written)
    grown = {n: shape for n, shape in shapes.items() if any(a for a, _ in shape)}
    followed = follow(read, grown, decoder.context, steps)
    extents = {
        cache.pair.past: Extent(0, Beyond.ZERO) if cache.grows else None for cache in decoder.caches
    }
    whole = store_caches(with_capacity(followed, extents, decoder.following), decoder.caches)
    presents = {cache.pair.present for cache in decoder.caches}
    kept = tuple(n for n in whole.outputs if n in presents or n == decoder.logits)
    made = replace(whole, outputs=kept)
    _check(decoder, made)
    return last_row(made, decoder.logits) if last and steps > 1 else made


def _check(decoder: Decoder, made: Graph) -> None:
    for cache in decoder.caches:
        found = made.value(cache.pair.present)
        if found.shape != cache.shape or found.dtype is not cache.dtype:
            raise GraphError(
                f"Output `{cache.pair.present}` has the shape {found.shape} for a context of "
                f"{decoder.context}, and the cache `{cache.pair.past}` {cache.shape}; they are "
                "not one cache."
            )

"""Stored programs of sessions: what a file of them has to say."""

from pathlib import Path

import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.library import open_library
from tightship.engine.state.decoder import Declared
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.recipes import recording
from tightship.engine.stored.save import save, save_steps
from tightship.engine.stored.steps import StoredSteps, read_steps, steps_json
from tightship.errors import FormatError
from tightship.graph import DType

DECLARED = Declared(
    {"ids": (1, "length"), "past": None},
    {"logits": (1, "length", 50)},
    {"ids": DType.INT64, "past": DType.FLOAT32},
)


def stored(folder: Path, **changes: object) -> StoredSteps:
    """Programs for one and two tokens, over the weights of the first."""
    whole, made = decoder(decoders.llama(), 32), Compatibility.here(1, ())
    with recording():
        one, two = (prepare(whole.graph(n, last=True), "llama", Settings(), {}) for n in (1, 2))
        save(folder / "base.tship", [one], made)
        base = StoredModel(folder / "base.tship")
        about = steps_json(DECLARED, (2, 1), "digest") | changes
        save_steps(folder / "steps.tship", [two, one], made, base.copies, about)
    return read_steps(folder / "steps.tship", base)


def test_programs_are_read_with_what_was_said_of_them(tmp_path: Path) -> None:
    open_library()
    found = stored(tmp_path)
    assert (found.declared, found.sizes, found.digest) == (DECLARED, (2, 1), "digest")
    assert found.settings == Settings()
    whole = decoder(decoders.llama(), 32)
    for steps in found.sizes:
        tokens = found.compiled(steps, whole).placement.lowered.inputs["input_ids"]
        assert tokens.shape == (1, steps)


@pytest.mark.parametrize(
    "changes",
    [{"sizes": [4, 2, 1]}, {"sizes": [-1, 1]}, {"types": [["ids", "complex"]]}, {"more": 1},
     {"inputs": [["ids"]]}, {"digest": 5}],
)  # fmt: skip
def test_what_does_not_fit_the_programs_is_refused(
    changes: dict[str, object], tmp_path: Path
) -> None:
    open_library()
    with pytest.raises(FormatError, match="damaged prepared model"):
        stored(tmp_path, **changes)

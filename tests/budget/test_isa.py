import pytest

from tests.small_models import dense
from tightship import _core
from tightship.budget import (
    IsaPlanner,
)
from tightship.budget.isa import MASKS, checked_isa
from tightship.errors import InputError


def test_an_instruction_set_that_the_machine_lacks_is_refused():
    if _core.onednn_cpu_isa() & MASKS["avx512_core_amx"] == MASKS["avx512_core_amx"]:
        pytest.skip("this machine has all of them")
    with IsaPlanner("avx512_core_amx") as planner, pytest.raises(InputError) as caught:
        planner.plan(dense()[0], {"batch": 8})
    assert "less than the instruction set `avx512_core_amx`" in str(caught.value)
    assert "choose `avx2`" in str(caught.value)
    with pytest.raises(InputError, match=r"`sse41` is not an instruction set to plan for; choose"):
        checked_isa("sse41")

"""The driver without a device answers as strictly as the real one is documented to."""

from tests.native.driver_rules import answers
from tests.native.fake_cuda import FakeCuda

ANSWERS = {
    "sizes_reserved": [1, 1, 1, 0],
    "aligned": [0, 0],
    "grown": [0, 0, 0, 0, 0, 1, 1, 0],
    "sizes_created": [1, 1, 1, 0, 2],
    "mapped_wrongly": [0, 0, 1, 1, 1, 1, 1],
    "mapped_twice": [0, 0, 0, 208, 0, 208, 0],
    "mapped_over_two_reservations": [0, 0, 0, 0, 0, 1],
    "accessed": [0, 1, 0, 0, 0, 0, 1, 1, 0, 0],
    "accessed_in_part": [0, 0, 0, 1, 1],
    "accessed_over_two_reservations": [0] * 8 + [1],
    "unmapped_wrongly": [0, 1, 0, 0, 1, 1, 1, 0, 1],
    "unmapped_together": [0, 0, 0, 0, 0, 1],
    "unmapped_together_over_two_reservations": [0] * 8 + [1],
    "mapped_again": [0] * 8,
    "freed_wrongly": [0, 1, 1, 0, 0, 1, 0, 0, 1],
    "released_while_mapped": [0] * 6,
    "events": [0] * 7,
    "without_context": [201, 201, 201, 201, 201, 1, 1, 201, 0, 201],
}
"""Results: 0 success, 1 invalid value, 2 out of memory, 201 no context, 208 mapped already."""


def test_it_refuses_what_the_documentation_does_not_allow_and_is_left_empty(tmp_path):
    fake = FakeCuda(tmp_path)
    for name, results in answers(fake.path):
        assert results == ANSWERS[name], name
        kinds = ("chunks", "reserved", "mapped", "events", "contexts", "depth")
        assert [fake.count(kind) for kind in kinds] == [0] * len(kinds), name

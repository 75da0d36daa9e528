"""Names of caches before and after a run."""

import pytest

from tightship.engine.state.pairs import names_of_pairs

CACHE = ("batch", 2, "past", 4)


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.11.value", "present_key_values.11.value"),
        ("past_key_0", "present_key_0"),
        ("past_0", "present_0"),
        ("past.0.k", "present.0.k"),
        ("cache_k_in_3", "cache_k_out_3"),
        ("in_cache", "out_cache"),
    ],
)
def test_names_of_exporters(past: str, present: str) -> None:
    outputs = ["logits", "present.99.key", present]
    assert names_of_pairs({"input_ids": ("b", "s"), past: CACHE}, outputs) == {past: present}


def test_keys_are_not_taken_for_values() -> None:
    names = [f"{layer}.{part}" for layer in (0, 1, 10) for part in ("key", "value")]
    inputs = {f"past_key_values.{name}": CACHE for name in names}
    found = names_of_pairs(inputs, [f"present.{name}" for name in reversed(names)])
    assert found == {f"past_key_values.{name}": f"present.{name}" for name in names}


def test_a_mask_of_the_past_is_no_cache() -> None:
    inputs = {"past_mask": ("b", "p"), "input_ids": ("b", "s")}
    assert names_of_pairs(inputs, ["present_mask"]) == {}

"""The table of architectures."""

from tightship.frontend.gguf.architectures import ARCHITECTURES, COMMON, IDLE, ZERO


def test_names_are_those_of_files_and_keys_stand_once() -> None:
    for name, each in ARCHITECTURES.items():
        assert name == each.name
        keys = [*COMMON, *IDLE, *ZERO, *each.keys, *each.idle]
        assert sorted(set(keys)) == sorted(keys)

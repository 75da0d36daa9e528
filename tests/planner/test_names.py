import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.planner.names import names_of


@given(words=st.lists(st.text(max_size=5)), data=st.data())
def test_a_column_of_names_is_the_sequence_it_was_made_of(words, data):
    names = names_of(words)
    assert len(names) == len(words)
    assert list(names) == words
    assert names_of(names) is names
    assert names[1:] == tuple(words[1:])
    if words:
        index = data.draw(st.integers(-len(words), len(words) - 1))
        assert names[index] == words[index]


@pytest.mark.parametrize("index", [2, -3])
def test_a_name_past_the_end_is_an_error(index):
    with pytest.raises(IndexError):
        names_of(["a", "b"])[index]

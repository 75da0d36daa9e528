"""Loops loaded for several dimensions: which stay, and whose weights they use."""

import numpy as np
import pytest

from tests.at_once import at_once
from tests.driver.nnapi.test_control import W
from tests.driver.nnapi.test_open_operands import open_loop
from tightship._core import StopFlag
from tightship.driver.client.assembling import assembled
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import SHAPES_MAX, OpenOperands
from tightship.driver.models.open_subgraph_sequence import CHAINS_MAX
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.nnapi import routine_of
from tightship.engine.arenas.arena_group import ArenaGroup

SECOND_NS = 1_000_000_000


class Counting(Loader):
    """Notes for which programs it was to use the weights of another."""

    def __init__(self):
        super().__init__(ArenaGroup())
        self.alike = []

    def once(self):
        return self

    def like(self, base, graph):
        self.alike.append((base, super().like(base, graph)))
        return self.alike[-1][1]


class Loop:
    """tanh(x W) for x of any number of rows, with what it loads and translates."""

    def __init__(self):
        self.model = assembled(open_loop()).model(None)
        self.translated = []
        self.loader = Counting()
        self.operands = OpenOperands(self.translate, [(0, 3), (1,)], self.loader, None)

    def translate(self, dimensions):
        self.translated.append(dimensions[0])
        return routine_of(self.model, [], dimensions)

    def at(self, rows):
        chain, outputs = self.operands.at(((rows, 3), (1,)))
        assert outputs == ((rows, 3),)
        return chain

    def check(self, rows):
        chain = self.at(rows)
        x = np.full((rows, 3), 0.5, np.float32)
        values = dict(zip(chain.input_names, (x, np.ones(1, np.int32)), strict=True))
        (result,) = chain.run(values, {}, Limit(StopFlag(), SECOND_NS)).values()
        np.testing.assert_allclose(result, np.tanh(x @ W.T), 1e-6)


@pytest.fixture
def loop():
    found = Loop()
    yield found
    found.operands.close()


def test_dimensions_that_came_before_are_not_translated_again(loop):
    for rows in (2, 3, 2, 3):
        loop.check(rows)
    assert loop.translated == [(2, 3), (3, 3), (3, 3)]  # to know outputs, then to load


def test_other_dimensions_use_the_weights_of_the_first(loop):
    loop.check(2)
    assert not loop.loader.alike
    loop.check(3)
    bases, made = zip(*loop.loader.alike, strict=True)
    assert bases == loop.at(2).programs
    assert not set(made) & set(bases)


def test_dimensions_used_longest_ago_are_closed(loop):
    for rows in range(1, CHAINS_MAX + 4):
        loop.check(rows)
    programs = len(loop.at(1).programs)
    made = [model for _, model in loop.loader.alike]
    assert [model.is_closed for model in made[: 2 * programs]] == [True] * 2 * programs
    assert not any(model.is_closed for model in made[2 * programs :])
    assert not any(model.is_closed for model in loop.at(1).programs)
    loop.check(2)


def test_dimensions_that_were_used_again_stay(loop):
    for rows in range(1, CHAINS_MAX + 2):
        loop.check(rows)
    loop.check(2)
    loop.check(CHAINS_MAX + 2)
    programs = len(loop.at(1).programs)
    closed = [model.is_closed for _, model in loop.loader.alike]
    assert closed[:programs] == [False] * programs
    assert closed[programs : 2 * programs] == [True] * programs


def test_what_runs_is_not_closed(loop):
    loop.check(1)
    chain = loop.at(2)
    with chain._taken(((2, 3), (1,))) as taken:
        for rows in range(3, CHAINS_MAX + 6):
            loop.check(rows)
        assert not any(model.is_closed for model in taken.programs)
    loop.check(CHAINS_MAX + 6)
    assert all(model.is_closed for model in taken.programs)


def test_runs_of_many_threads_find_their_dimensions(loop):
    loop.check(1)

    def work(seed):
        for rows in np.random.default_rng(seed).integers(1, 2 * CHAINS_MAX, 12):
            loop.check(int(rows))

    at_once(work, range(4))


def test_only_so_many_dimensions_of_outputs_are_remembered(loop):
    for rows in range(1, SHAPES_MAX + 3):
        loop.at(rows)
    assert len(loop.operands._shapes) == SHAPES_MAX

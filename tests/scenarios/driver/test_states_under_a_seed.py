"""States in buffers of a real driver, against arrays here: most runs of them are repeated ones."""

import random

import numpy as np
import pytest

from tests.scenarios.driver.test_feature_levels import client_of
from tests.small_models import relu_chain
from tightship.driver.models.running import Runs
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

NONE = ErrorStatus.NONE
IA, GF = ErrorStatus.INVALID_ARGUMENT, ErrorStatus.GENERAL_FAILURE
COUNT = 3


class States:
    """Buffers of one model, and what they hold: an array, or None.

    Attributes:
        ran: How many runs went well.
    """

    def __init__(self, client, seed):
        self.rng, self.client = random.Random(seed), client
        self.model = client.prepare(relu_chain(1, 64))
        self.shape = self.model.interface.inputs[0].dimensions
        self.burst, self.ran = self.model.burst(), 0
        self.buffers, self.held, self.reusable = [None] * COUNT, [None] * COUNT, {}
        for index in range(COUNT):
            self.allocate(index)

    def allocate(self, index):
        if self.buffers[index] is not None:
            self.buffers[index].close()
        roles = [(self.model, 0)]
        self.buffers[index] = self.client.allocate(inputs=roles, outputs=roles)
        self.held[index], self.reusable = None, {}

    def step(self):
        index = self.rng.randrange(COUNT)
        rare = self.rng.choice(
            [self.fill, self.copy] * 2 + [self.allocate, self.fill_badly, self.look]
        )
        if self.rng.random() < 0.1:
            rare(index)
        modes = [self.execute, self.in_burst, self.again] * 3 + [self.fenced]
        mode = self.rng.choice(modes)
        for permit in range(self.rng.choice((1, 2, 9, 20))):
            ends = (index, (index + 1) % COUNT)[:: -1 if permit % 2 else 1]
            self.run(mode, *ends if self.rng.random() < 0.99 else (index, index))

    def run(self, mode, read, written):
        """Refused runs leave what there is alone."""
        wanted = NONE if read != written else IA
        if wanted is NONE and self.held[read] is None:
            wanted = GF
        ends = [self.buffers[read].of()], [self.buffers[written].of()]
        assert status_of(mode, ends, (read, written)) is wanted
        if wanted is NONE:
            self.held[written] = np.tanh(self.held[read])
            self.ran += 1

    def execute(self, ends, _):
        self.model.execute(*ends)

    def in_burst(self, ends, _):
        self.burst.execute(*ends)

    def again(self, ends, indexes):
        if indexes not in self.reusable:
            self.reusable[indexes] = self.model.reusable(*ends)
        self.reusable[indexes].execute()

    def fenced(self, ends, _):
        with self.model.execute_fenced(*ends) as fenced:
            fenced.wait(30)

    def fill(self, index):
        value = np.full(self.shape, self.rng.uniform(-2, 2), np.float32)
        self.buffers[index].copy_from(value)
        self.held[index] = value

    def copy(self, index):
        """Into a buffer from the next; one that holds nothing leaves nothing."""
        value = self.held[(index + 1) % COUNT]
        source = self.buffers[(index + 1) % COUNT]
        assert status_of(self.buffers[index].copy_from, source) is (GF if value is None else NONE)
        self.held[index] = value

    def fill_badly(self, index):
        assert status_of(self.buffers[index].copy_from, np.zeros(1, np.float32)) is IA
        self.held[index] = None

    def look(self, index):
        result = np.empty(self.shape, np.float32)
        wanted = GF if self.held[index] is None else NONE
        assert status_of(self.buffers[index].copy_to, result) is wanted
        if wanted is NONE:
            np.testing.assert_allclose(result, self.held[index], 1e-4, 1e-6)


def status_of(call, *arguments):
    try:
        call(*arguments)
    except DriverError as error:
        return ErrorStatus(error.status)
    return NONE


@pytest.mark.parametrize("seed", range(3))
def test_states_are_what_they_would_be_in_this_process(tmp_path, monkeypatch, seed):
    asked, plain = [], Runs.run
    monkeypatch.setattr(Runs, "run", lambda *each: asked.append(None) or plain(*each))
    with client_of(tmp_path) as client:
        states = States(client, seed)
        for _ in range(300):
            states.step()
        for index in range(COUNT):
            states.look(index)
        assert len(asked) < states.ran  # some at least, however busy the machine is

"""The order in which runs have turns: models, accounts and clients one after another."""

import os
import random
from collections import defaultdict, deque

import pytest

from tightship._core import QueuedRuns, RequestMetrics, RunPermits
from tightship.driver.permit_names import named_model, own_model


class Queue:
    """Runs of named models that wait for one of some turns."""

    def __init__(self, permits=1):
        self.permits, self.metrics = RunPermits(permits), RequestMetrics()
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.runs = QueuedRuns(self.permits, self.bell)
        self.names, self.count = {}, 0

    def join(self, names, priority=0):
        self.count += 1
        self.names[self.count] = names
        return self.count, self.runs.join(self.count, names, priority, self.metrics)

    def take(self):
        """Take a turn that is free."""
        number, has_permit = self.join(named_model("running", "", ""))
        assert has_permit
        return number

    def next(self, ended):
        """The run that has the turn of another that ends."""
        self.runs.give_back(ended)
        return self.runs.next()

    def order(self, ended):
        """The names of all that wait, in the order of their turns."""
        found = []
        while (ended := self.next(ended)) is not None:
            found.append(self.names[ended])
        assert self.permits.taken_count == 0
        return found


@pytest.fixture
def queue():
    made = Queue()
    yield made
    os.close(made.bell)


def slow(client, account="a"):
    return named_model("slow", account, str(client))


@pytest.mark.parametrize("accounts", [1, 20])
def test_a_flood_on_one_model_delays_another_by_the_run_that_goes_on(queue, accounts):
    running, has_permit = queue.join(slow(0))
    assert has_permit
    for number in range(20):
        queue.join(slow(number, account=f"account {number % accounts}"))
    fast = named_model("fast", "account 0", "0")
    queue.join(fast)
    assert queue.order(running).index(fast) == 0


def test_a_flood_under_way_delays_another_model_by_the_run_that_goes_on(queue):
    ended, _ = queue.join(slow(0))
    for number in range(20):
        queue.join(slow(number))
    for _ in range(5):
        ended = queue.next(ended)
    fast = named_model("fast", "b", "0")
    queue.join(fast)
    assert queue.names[queue.next(ended)] == fast


def test_accounts_of_a_model_take_permits_and_then_their_clients(queue):
    ended = queue.take()
    for number in (1, 1, 1, 2):
        queue.join(slow(number, account="many"))
    one = slow(1, account="one")
    queue.join(one)
    many, other = slow(1, account="many"), slow(2, account="many")
    assert queue.order(ended) == [many, one, other, many, many]


def test_an_account_has_no_more_permits_for_calling_more_models(queue):
    ended = queue.take()
    many = [named_model(f"model {number}", "many", "1") for number in range(5)]
    for names in (*many, *many):
        queue.join(names)
    one = named_model("another", "one", "2")
    for _ in range(3):
        queue.join(one)
    found = queue.order(ended)
    assert [index for index, names in enumerate(found) if names == one] == [1, 3, 5]
    assert found[::2][:3] + found[6:8] == many


def test_two_models_in_permit_give_an_account_every_other_run(queue):
    """Each of three callers asks again when its run has ended."""
    mine = [named_model(name, "two", "1") for name in ("first", "second")]
    other = named_model("third", "one", "1")
    ended, _ = queue.join(mine[0])
    for names in (mine[1], other):
        queue.join(names)
    found = []
    for _ in range(20):
        before, ended = queue.names[ended], queue.next(ended)
        queue.join(before)
        found.append(queue.names[ended])
    assert found.count(other) == 10
    assert found.count(mine[0]) == found.count(mine[1]) == 5


def test_own_models_are_one_more_model_of_their_account(queue):
    ended = queue.take()
    both = [named_model("model", "both", "1"), own_model("both", "1", 7)]
    for names in (*both, *both):
        queue.join(names)
    one = named_model("another", "one", "2")
    for _ in range(2):
        queue.join(one)
    assert [names == one for names in queue.order(ended)] == [
        False,
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_flood_of_accounts_on_one_model_delays_an_account_of_two_models_by_one_run(queue):
    ended, _ = queue.join(slow(0))
    for number in range(20):
        queue.join(slow(0, account=f"account {number}"))
    two = [named_model(name, "two", "1") for name in ("first", "second")]
    for names in two:
        queue.join(names)
    found = queue.order(ended)
    assert [found.index(names) for names in two] == [0, 2]


def test_an_account_has_no_more_permits_for_having_prepared_more_models(queue):
    ended = queue.take()
    own = [own_model("greedy", "1", number) for number in range(5)]
    for names in own:
        queue.join(names)
    modest = own_model("modest", "2", 9)
    queue.join(modest)
    assert queue.order(ended).index(modest) == 1


def test_a_flood_on_an_own_model_delays_another_by_the_run_that_goes_on(queue):
    ended, _ = queue.join(own_model("user", "1", 1))
    for _ in range(5):
        queue.join(own_model("user", "1", 1))
    other = own_model("user", "1", 2)
    queue.join(other)
    assert queue.order(ended)[0] == other


def test_priorities_are_those_of_a_clients_models(queue):
    ended = queue.take()
    names = {priority: own_model("user", "1", priority) for priority in (0, 1, 2)}
    high = own_model("user", "2", 9)
    for priority in (0, 1, 2, 0, 2):
        queue.join(names[priority], priority)
    queue.join(high, 2)
    assert queue.order(ended) == [names[2], high, names[2], names[1], names[0], names[0]]


def test_a_run_that_leaves_has_no_permit(queue):
    ended = queue.take()
    (gone, _), (other, _) = queue.join(slow(1)), queue.join(slow(2))
    queue.runs.leave(gone)
    assert queue.permits.waiting_count == 1
    assert queue.next(ended) == other
    assert queue.next(other) is None
    assert queue.permits.is_free


def test_a_permit_that_came_to_a_run_that_leaves_goes_to_the_next(queue):
    ended = queue.take()
    (gone, _), (other, _) = queue.join(slow(1)), queue.join(slow(2))
    queue.runs.give_back(ended)
    queue.runs.leave(gone)
    assert queue.runs.next() == other
    assert queue.runs.next() is None
    queue.runs.leave(other)  # as one does that cannot begin
    assert queue.permits.is_free


def test_the_bell_rings_for_each_permit_that_comes(queue):
    ended = queue.take()
    queue.join(slow(1))
    with pytest.raises(BlockingIOError):
        os.eventfd_read(queue.bell)
    queue.runs.give_back(ended)
    assert os.eventfd_read(queue.bell) == 1


def test_those_that_wait_are_counted(queue):
    ended = queue.take()
    for number in range(20):
        queue.join(slow(number))
    assert queue.metrics.now()[2] == queue.permits.waiting_count == 20
    queue.runs.leave(5)
    assert queue.metrics.now()[2] == 19
    queue.order(ended)
    assert queue.metrics.now()[2] == 0


class Model:
    """Another implementation of the order, by rows of what waits in each group."""

    def __init__(self):
        self.rows = [defaultdict(deque) for _ in range(4)]
        self.waiting = defaultdict(deque)

    def join(self, run, names):
        for level in range(4):
            row = self.rows[level][names[:level]]
            if names[: level + 1] not in row:
                row.append(names[: level + 1])
        self.waiting[names].append(run)

    def leave(self, run, names):
        self.waiting[names].remove(run)
        for level in reversed(range(4)):
            group = names[: level + 1]
            if not (self.waiting[names] if level == 3 else self.rows[level + 1][group]):
                self.rows[level][names[:level]].remove(group)

    def move_back(self, names):
        for level in range(4):
            row, group = self.rows[level][names[:level]], names[: level + 1]
            if group in row:
                row.remove(group)
                row.append(group)

    def end(self, names):
        """The run that is next when one ends; None if there is none."""
        self.move_back(names)
        if not self.rows[0][()]:
            return None
        group = ()
        for level in range(4):
            group = self.rows[level][group][0]
        run = self.waiting[group][0]
        self.move_back(group)
        self.leave(run, group)
        return run


@pytest.mark.parametrize("seed", range(20))
def test_permits_are_those_of_another_implementation(seed):
    rng, queue, model = random.Random(seed), Queue(permits=2), Model()
    running = []
    for _ in range(400):
        waiting = [run for row in model.waiting.values() for run in row]
        chance = rng.random()
        if chance < 0.5:
            names = tuple(rng.choice("abc"[: level + 1]) for level in range(4))
            run, has_permit = queue.join(names)
            assert has_permit == (len(running) < 2)
            if has_permit:
                running.append(run)
            else:
                model.join(run, names)
        elif chance < 0.6 and waiting:
            run = rng.choice(waiting)
            queue.runs.leave(run)
            model.leave(run, queue.names[run])
        elif running:
            ended = running.pop(rng.randrange(len(running)))
            run = queue.next(ended)
            assert run == model.end(queue.names[ended])
            running += [] if run is None else [run]
    os.close(queue.bell)


def test_another_account_at_the_flooded_model_comes_after_a_call_of_another_model(queue):
    mine, other = slow(1, account="mine"), slow(2, account="other")
    ended, _ = queue.join(mine)
    for names in (mine, other, mine, other):
        queue.join(names)
    fast = named_model("fast", "mine", "1")
    queue.join(fast)
    assert queue.order(ended) == [fast, other, mine, other, mine]


def test_a_second_model_gives_an_account_two_runs_for_one_at_most(queue):
    """Each caller asks again when its run has ended; both accounts wait for the first model."""
    mine = [named_model(f"model {number}", "many", "1") for number in range(4)]
    other = named_model("model 0", "one", "2")
    ended, _ = queue.join(mine[0])
    for names in (*mine[1:], other):
        queue.join(names)
    found = []
    for _ in range(30):
        before, ended = queue.names[ended], queue.next(ended)
        queue.join(before)
        found.append(queue.names[ended])
    assert found.count(other) >= 10

"""Random calls: the service and the oracle of the rules say the same status of each."""

import random
from dataclasses import replace

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.oracle import IA, NONE, Memory, Net, Oracle
from tests.driver.small_models import Client, status_of
from tightship.driver.protocol import messages as m
from tightship.driver.types.model import DataLocation, Lifetime, Model, Operand, Operation, Subgraph
from tightship.driver.types.operand_type import ValueType, size_bytes
from tightship.driver.types.request import Request, RequestArgument, RequestPool

SHAPES = [(4,), (2, 3), (0,), (0, 3), (), (2, 0)]
KINDS = [(3, 0.0, 0), (5, 0.5, 0), (5, 1.0, 0), (8, 0.0, 0), (1, 0.0, 0)]


def produced(dimensions):
    """Return an engine's outputs for dimensions that are not all known."""
    return tuple(axis or 2 for axis in dimensions) or (2,)


POOL_BYTES = [4096, 4, 6, 8, 12, 16, 18, 24, 27, 36]


class World:
    """A client of a service and what the oracle knows of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.client = Client(FakeServer(seed=seed))
        self.client.server.engine.produce = produced
        self.oracle = Oracle()
        self.counts = {}
        self.latest = None
        self.big_pool = self.add_pool(4096, 3, "mmap_fd")
        for size in POOL_BYTES:
            self.add_pool(size, self.pick((3, 3, 3, 3, 1, 2, 0)))
            self.add_pool(size, 3, self.pick(("mmap_fd", "unheard of")))
        for _ in range(3):
            self.add_model()
        for _ in range(12):
            self.allocate()

    def pick(self, rows):
        return self.rng.choice(list(rows))

    def chance(self, part):
        return self.rng.random() < part

    def add_pool(self, size, protection, kind="mmap_fd"):
        rng = self.rng
        same = self.chance(0.3) and self.oracle.pools
        file = self.pick(self.oracle.pools.values()).file if same else (9, rng.getrandbits(60))
        start = self.pick((0, 0, 4096))
        number = self.client.pool(
            size, protection, kind, offset_bytes=start, facts={"identity": file}
        )
        bits = bool(protection & 1), bool(protection & 2)
        self.oracle.pools[number] = Memory(size, file, start, *bits, kind == "mmap_fd")
        return number

    def add_model(self):
        sides = ([], [])
        for side in sides:
            for _ in range(self.rng.randint(1, 2)):
                kind = self.pick(KINDS)
                side.append((kind, () if kind[0] == 1 else self.pick(SHAPES)))
        operands, operations = [], []
        for (kind, dims), lifetime in [
            *((end, Lifetime.SUBGRAPH_INPUT) for end in sides[0]),
            *((end, Lifetime.SUBGRAPH_OUTPUT) for end in sides[1]),
        ]:
            operands.append(Operand(ValueType(kind[0], dims, *kind[1:]), lifetime))
        count = len(sides[0])
        ends = tuple(range(count)), tuple(range(count, len(operands)))
        operations = (Operation(0, *ends),)
        number = self.client.model(Model(Subgraph(tuple(operands), operations, *ends)))
        self.oracle.nets[number] = Net(*sides)

    def role(self, call_models, side):
        index = self.rng.randrange(len(call_models)) if call_models else 0
        ends = getattr(self.oracle.nets.get((*call_models, 0)[index]), side, [0])
        io_index = self.rng.randrange(len(ends)) if self.chance(0.95) else self.pick((-1, 9))
        return m.Role(index, io_index, self.pick((1.0,) * 20 + (0.0, 2.0)))

    def allocate(self):
        models = tuple(self.pick(self.oracle.nets) for _ in range(self.pick((1, 1, 1, 2))))
        if self.chance(0.03):
            models = self.pick(((), (*models, 12345)))
        ins = tuple(self.role(models, "inputs") for _ in range(self.pick((0, 1, 1))))
        outs = tuple(self.role(models, "outputs") for _ in range(self.pick((0, 1, 1))))
        dims = self.pick(((),) * 12 + ((4,), (2, 3), (0, 3), (-1,), (2**31,)))
        call = m.Allocate(dims, models, ins, outs)
        reply = self.client(call)
        self.compare(call, reply, self.oracle.allocate, call, getattr(reply, "token", None))

    def copy(self):
        token = self.pick([*self.oracle.tensors, 77])
        pool = self.pick([*self.oracle.pools, 78])
        tensor = self.oracle.tensors.get(token)
        dims = () if tensor is None else self.pick(((), self.full(tensor.dims)))
        if self.chance(0.1):
            dims = self.pick(SHAPES)
        is_out = self.chance(0.5)
        if tensor and self.chance(0.8):
            exact = (tensor.filled if is_out else dims) or tensor.dims
            needed = size_bytes(tensor.kind[0], exact)
            pool = self.pick([n for n, p in self.oracle.pools.items() if p.size == needed] or [78])
        if is_out:
            call = m.CopyTo(token, pool)
            return self.compare(call, self.client(call), self.oracle.copy_to, call)
        call = m.CopyFrom(token, pool, dims)
        return self.compare(call, self.client(call), self.oracle.copy_from, call)

    def copy_between(self):
        token, source = (self.pick([*self.oracle.tensors, 77]) for _ in range(2))
        tensor = self.oracle.tensors.get(token)
        if tensor and self.chance(0.8):
            alike = [n for n, each in self.oracle.tensors.items() if each.kind == tensor.kind]
            source = self.pick([n for n in alike if self.oracle.tensors[n].filled] or alike)
        call = m.CopyBetween(token, source)
        self.compare(call, self.client(call), self.oracle.copy_between, call)
        self.describe(token)

    def describe(self, token):
        call = m.DescribeBuffer(token)
        reply = self.client(call)
        self.compare(call, reply, self.oracle.describe, call)
        if status_of(reply) == NONE:
            assert reply.dimensions == self.oracle.tensors[token].filled

    def full(self, dims):
        return tuple(axis or self.pick((2, 3)) for axis in dims)

    def token_for(self, role):
        """A buffer with a role, mostly one that is filled if it is to be read."""
        fitting = [n for n, each in self.oracle.tensors.items() if role in each.roles]
        if role[1] == "inputs" and self.chance(0.8):
            fitting = [n for n in fitting if self.oracle.tensors[n].filled]
        return self.pick(fitting) if fitting and self.chance(0.6) else None

    def argument(self, role, end, pools):
        """An argument that the rules allow, mostly."""
        (kind, *_), dims = end
        is_output = role[1] == "outputs"
        token = self.token_for(role)
        held = self.oracle.tensors[token].filled if token and not is_output else None
        given = held or self.full(dims or self.pick(SHAPES))
        if given == dims or kind == 1 or (is_output and self.chance(0.5)):
            given = self.pick(((), dims))
        if token:
            pools.append(RequestPool(token, is_token=True))
            return RequestArgument(DataLocation(len(pools) - 1), given)
        length = size_bytes(kind, given or dims) or self.pick((1, 8, 24, 64))
        self.offset_bytes += 64
        padding = self.pick((0, 0, 0, 4))
        return RequestArgument(DataLocation(0, self.offset_bytes - 64, length, padding), given)

    def spoiled(self, argument):
        """An argument with something wrong, mostly."""
        location = argument.location
        name = self.pick(
            ("pool_index", "offset_bytes", "length_bytes", "padding_bytes", "dims", "none")
        )
        if name == "dims":
            return replace(argument, dimensions=self.pick((*SHAPES, (-1,), (2**31,), (1, 1, 1))))
        if name == "none":
            location = self.pick((DataLocation(), location))
            return RequestArgument(location, self.pick(((), (4,))), has_no_value=True)
        value = self.pick((-1, 0, 1, 2, 3, 4, 4096, 2**31, 2**63 - 1))
        return replace(argument, location=replace(location, **{name: value}))

    def request(self, number, net):
        self.offset_bytes = 0
        pools = [RequestPool(self.big_pool)]
        rows = [
            [self.argument((number, side, index), end, pools) for index, end in enumerate(ends)]
            for side, ends in (("inputs", net.inputs), ("outputs", net.outputs))
        ]
        while self.chance(0.3):
            self.spoil(pools, self.pick(rows))
        return Request(*map(tuple, rows), tuple(pools))

    def spoil(self, pools, row):
        if self.chance(0.3):
            token = self.pick((0, -1, 100, *self.oracle.tensors))
            other = self.pick(
                (RequestPool(self.pick(self.oracle.pools)), RequestPool(token, is_token=True))
            )
            pools[self.rng.randrange(len(pools))] = other
        elif row and self.chance(0.1):
            row.append(row[0]) if self.chance(0.5) else row.pop()
        elif row:
            index = self.rng.randrange(len(row))
            row[index] = self.spoiled(row[index])

    def execute(self):
        number = self.pick([*self.oracle.nets] * 20 + [79])
        net = self.oracle.nets.get(number, Net([], []))
        number, request = self.latest or (number, self.request(number, net))
        self.latest = (number, request) if self.chance(0.25) else None  # to be asked again
        deadline = self.pick((-1,) * 40 + (-2, 5, 10**12))
        loop = self.pick((-1,) * 40 + (-2, 10**18))
        kind = self.pick((m.Execute, m.Execute, m.ExecuteFenced))
        call = kind(number, request, deadline_ns=deadline, loop_timeout_ns=loop)
        if kind is m.ExecuteFenced:
            return self.execute_fenced(call)
        now = self.client.server.now_ns
        return self.compare(call, self.client(call), self.oracle.execute, call, now, produced)

    def execute_fenced(self, call):
        reply = self.client(call)
        if launched := getattr(reply, "execution", 0):
            reply = self.client(m.GetExecutionInfo(launched))
            self.client(m.ReleaseExecution(launched))
        self.compare_fenced(call, reply)

    def compare_fenced(self, call, reply):
        now = self.client.server.now_ns
        expected = self.oracle.status(lambda: self.oracle.execute(call, now, produced, fenced=True))
        self.note(call, reply, expected)

    def compare(self, call, reply, rule, *arguments):
        self.note(call, reply, self.oracle.status(rule, *arguments))

    def note(self, call, reply, expected):
        status = status_of(reply)
        assert status == expected, (call, reply, expected, self.oracle)
        key = type(call).__name__, int(status)
        self.counts[key] = self.counts.get(key, 0) + 1

    def step(self):
        self.pick((self.execute,) * 8 + (self.copy,) * 3 + (self.copy_between, self.allocate))()


def agree(seed, steps):
    world = World(seed)
    for _ in range(steps):
        world.step()
    return world.counts


@pytest.mark.parametrize("seed", range(15))
def test_service_and_oracle_agree(seed):
    counts = agree(seed, 200)
    assert sum(counts.values()) >= 200


def test_random_calls_reach_every_status_of_the_rules():
    total = {}
    for seed in range(100, 115):
        for key, count in agree(seed, 150).items():
            total[key] = total.get(key, 0) + count
    kinds = {"Execute", "ExecuteFenced", "CopyFrom", "CopyTo", "Allocate"}
    kinds |= {"CopyBetween", "DescribeBuffer"}
    assert {kind for kind, status in total if status == NONE} == kinds
    assert {kind for kind, status in total if status == IA} == kinds
    assert {status for kind, status in total if kind == "Execute"} == {0, 2, 3, 4, 6}
    runs = sum(count for (kind, _), count in total.items() if kind == "Execute")
    assert total["Execute", NONE] > runs / 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_service_and_oracle_agree_on_a_hundred_thousand_calls(seed):
    for part in range(20):
        agree(seed * 100 + part, 500)

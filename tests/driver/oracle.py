"""The rules of requests, allocations and copies, said a second time, from the specification.

Nothing here is of the driver but the messages and the numbers of the statuses. Rules are numbered
as in docs/reference/protocol.md.
"""

from dataclasses import dataclass, field

NONE, GF, SHORT, IA, PERSISTENT = 0, 2, 3, 4, 6

WIDTH = {0: 4, 1: 4, 2: 4, 3: 4, 4: 4, 5: 1, 6: 1, 7: 2, 8: 2, 9: 1, 10: 2, 11: 1, 12: 2}
WIDTH |= {13: 1, 14: 1}
SCALAR = (0, 1, 2, 6, 10)


@dataclass
class RefusedError(Exception):
    status: int


def demand(holds, status=IA):
    if not holds:
        raise RefusedError(status)


def unify(rows):
    """R43: what several partly known dimensions say together; None if they contradict."""
    ranks = {len(row) for row in rows if len(row)}
    if len(ranks) > 1:
        return None
    axes = []
    for axis in zip(*[row for row in rows if len(row)], strict=True):
        known = set(axis) - {0}
        if len(known) > 1:
            return None
        axes.append(known.pop() if known else 0)
    return tuple(axes)


def known(kind, dims):
    """R44: a scalar has no dimensions; a tensor has some, none of them 0."""
    if kind in SCALAR:
        return len(dims) == 0
    return len(dims) > 0 and all(dims)


def weight(kind, dims):
    """R45: 0 while something is unknown."""
    if not known(kind, dims):
        return 0
    total = WIDTH[kind]
    for axis in dims:
        total *= axis
    return total


def axes_are_legal(dims):
    return all(0 <= axis < 2**31 for axis in dims)


@dataclass
class Memory:
    """A pool, as it was registered."""

    size: int
    file: object
    start: int = 0
    reads: bool = True
    writes: bool = True
    decodes: bool = True
    image: bool = False


@dataclass
class Tensor:
    """A buffer. R59-R61: `filled` are the dimensions of what it holds, or None."""

    kind: tuple
    dims: tuple
    roles: set
    filled: tuple | None = None


@dataclass
class Net:
    """A prepared model: types (kind, scale, zero point, extra) and dimensions of its ends."""

    inputs: list
    outputs: list


@dataclass
class Oracle:
    pools: dict = field(default_factory=dict)
    nets: dict = field(default_factory=dict)
    tensors: dict = field(default_factory=dict)

    def status(self, call, *arguments):
        try:
            return call(*arguments) or NONE
        except RefusedError as refused:
            return refused.status

    def allocate(self, call, token):
        demand(call.models and (call.input_roles or call.output_roles))  # R46
        demand(all(model in self.nets for model in call.models))  # R47
        demand(axes_are_legal(call.dimensions))
        roles, ends = [], []
        for side, rows in (("inputs", call.input_roles), ("outputs", call.output_roles)):
            for role in rows:
                demand(role.model_index in range(len(call.models)))  # R47
                model = call.models[role.model_index]
                all_ends = getattr(self.nets[model], side)
                demand(role.io_index in range(len(all_ends)))  # R48
                demand(role.probability > 0.0 and role.probability <= 1.0)  # R49
                roles.append((model, side, role.io_index))
                ends.append(all_ends[role.io_index])
        demand(len(set(roles)) == len(roles))  # R50
        demand(len({kind for kind, _ in ends}) == 1)  # R51
        kind = ends[0][0]
        demand(kind[0] not in SCALAR or not call.dimensions)  # R44
        dims = unify([call.dimensions, *[dims for _, dims in ends]])
        demand(dims is not None)  # R52
        if token is not None:
            self.tensors[token] = Tensor(kind, dims, set(roles))

    def copy_from(self, call):
        demand(call.token in self.tensors)
        tensor = self.tensors[call.token]
        try:
            pool = self.pools.get(call.pool)
            demand(pool is not None and pool.decodes and pool.reads)  # R80
            dims = tuple(call.dimensions)
            demand(axes_are_legal(dims))
            if tensor.kind[0] in SCALAR:
                demand(not dims)  # R77
            demand(all(dims))  # R76
            both = unify([tensor.dims, dims])
            demand(both is not None and known(tensor.kind[0], both))  # R76
            demand(pool.size == weight(tensor.kind[0], both))  # R75
        except RefusedError:
            tensor.filled = None  # R61
            raise
        tensor.filled = both  # R60

    def copy_to(self, call):
        demand(call.token in self.tensors)
        tensor, pool = self.tensors[call.token], self.pools.get(call.pool)
        demand(pool is not None and pool.decodes and pool.writes)  # R80
        size = weight(tensor.kind[0], tensor.dims if tensor.filled is None else tensor.filled)
        demand(size in (0, pool.size))  # R75, R78
        demand(tensor.filled is not None, GF)  # R62

    def copy_between(self, call):
        """R82."""
        demand(call.token in self.tensors)
        if call.source == call.token:
            return
        target, source = self.tensors[call.token], self.tensors.get(call.source)
        target.filled = None
        demand(source is not None and source.kind == target.kind)
        whole = source.dims if source.filled is None else source.filled
        demand(unify([target.dims, whole]) is not None)
        demand(source.filled is not None, GF)
        target.filled = source.filled

    def describe(self, call):
        demand(call.token in self.tensors)
        demand(self.tensors[call.token].filled is not None, GF)

    def execute(self, call, now, produced, *, fenced=False):
        """A run on an engine that makes `produced(dimensions)` where they are not all known."""
        for time in (call.deadline_ns, call.loop_timeout_ns, getattr(call, "duration_ns", -1)):
            demand(time >= -1)  # R91
        demand(call.model in self.nets)
        net, request = self.nets[call.model], call.request
        for pool in request.pools:
            demand(pool.identifier > 0 if pool.is_token else pool.identifier in self.pools)  # R29
        demand(len(request.inputs) == len(net.inputs))  # R38
        demand(len(request.outputs) == len(net.outputs))
        reads = [
            self.argument(request, *row) for row in zip(request.inputs, net.inputs, strict=True)
        ]
        demand(all(each is None or each[1] for each in reads))  # R37
        writes = [
            self.argument(request, *row) for row in zip(request.outputs, net.outputs, strict=True)
        ]
        demand(not fenced or all(each is None or each[1] for each in writes))  # R88
        self.apart(request, reads, writes)
        demand(call.deadline_ns == -1 or call.deadline_ns > now, PERSISTENT)  # R91
        self.reachable(request, reads, writes)
        self.placed(call.model, request, reads, writes)
        return self.ran(request, net, writes, produced)

    def argument(self, request, given, end):
        """Dimensions, whether they are known, and pool index of an argument; None without value."""
        (kind, *_), dims = end
        place = given.location
        numbers = (place.offset_bytes, place.length_bytes, place.padding_bytes)
        if given.has_no_value:
            demand(place.pool_index == 0 and not any(numbers) and not given.dimensions)  # R30
            return None
        demand(place.pool_index in range(len(request.pools)))  # R31
        demand(axes_are_legal(given.dimensions))
        demand(kind not in SCALAR or not given.dimensions)  # R44
        both = unify([dims, given.dimensions])
        demand(both is not None)  # R36
        pool = request.pools[place.pool_index]
        memory = None if pool.is_token else self.pools[pool.identifier]
        if memory is None or memory.image:
            demand(numbers == (0, 0, 0))  # R32
        else:
            demand(numbers[0] >= 0 and numbers[1] > 0 and numbers[2] >= 0)  # R32
            demand(sum(numbers) <= memory.size)  # R31
            demand(numbers[0] % WIDTH[kind] == 0)  # R14
            if known(kind, both):
                demand(numbers[1] == weight(kind, both))  # R33
        return both, known(kind, both), place.pool_index, place

    def apart(self, request, reads, writes):
        """R39: the bytes of an output are no other argument's."""
        spans = [self.span(request, each) for each in writes]
        others = [self.span(request, each) for each in reads]
        for index, span in enumerate(spans):
            for other in spans[:index] + others:
                if span and other and span[0] == other[0]:
                    demand(max(span[1], other[1]) >= min(span[2], other[2]))

    def span(self, request, argument):
        if argument is None or request.pools[argument[2]].is_token:
            return None
        memory, place = self.pools[request.pools[argument[2]].identifier], argument[3]
        if memory.image:
            return memory.file, memory.start, memory.start + memory.size
        start = memory.start + place.offset_bytes
        return memory.file, start, start + place.length_bytes + place.padding_bytes

    def reachable(self, request, reads, writes):
        """R26, R67: every pool can be used as it is, every token is there; in the pools' order."""
        for index, pool in enumerate(request.pools):
            read = any(each and each[2] == index for each in reads)
            written = any(each and each[2] == index for each in writes)
            if pool.is_token:
                demand(pool.identifier in self.tensors)
                continue
            memory = self.pools[pool.identifier]
            demand(memory.decodes, GF)
            demand(memory.writes or not written, GF)
            demand(memory.reads or (written and not read), GF)

    def tokens(self, request, arguments):
        return [
            (index, request.pools[each[2]].identifier, each[0])
            for index, each in enumerate(arguments)
            if each and request.pools[each[2]].is_token
        ]

    def placed(self, model, request, reads, writes):
        ins, outs = self.tokens(request, reads), self.tokens(request, writes)
        written = [token for _, token, _ in outs]
        demand(len(set(written)) == len(written))  # R69
        demand(not set(written) & {token for _, token, _ in ins})
        for side, rows in (("inputs", ins), ("outputs", outs)):
            for index, token, _ in rows:
                demand((model, side, index) in self.tensors[token].roles)  # R68, R70
        for _, token, _ in ins:
            demand(self.tensors[token].filled is not None, GF)  # R62
        for _, token, dims in ins:
            demand(unify([dims, self.tensors[token].filled]) is not None)  # R64
        for _, token, dims in outs:
            demand(unify([dims, self.tensors[token].dims]) is not None)  # R64

    def ran(self, request, net, writes, produced):
        """R41, R60, R61, R65: what the engine makes, and what the buffers then hold."""
        status, results = NONE, []
        for each, ((kind, *_), dims) in zip(writes, net.outputs, strict=True):
            both = each[0] if each else dims
            made = both if known(kind, both) else produced(both)
            results.append(made)
            is_pool = each and not request.pools[each[2]].is_token
            if is_pool and weight(kind, made) > each[3].length_bytes:
                status = SHORT
        for index, token, _ in self.tokens(request, writes):
            if unify([results[index], self.tensors[token].dims]) is None:
                status = GF
        for index, token, _ in self.tokens(request, writes):
            self.tensors[token].filled = results[index] if status == NONE else None
        return status

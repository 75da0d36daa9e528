"""Groups the nodes of a large network into blocks: by module, or in pieces of the plan's order."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.view.module_names import module_of
from tightship.view.network.network import Network
from tightship.view.network.ranks import Neighbours, in_order
from tightship.view.palette import module_parts

GROUPS_MAX = 40
"""Most modules that one level is divided into."""
_SMALL = 2
"""Nodes of a module that are drawn one by one."""
_PIECE_MIN, _PIECE_MAX = 12, 60


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that are drawn as one until it is opened."""

    name: str
    nodes: tuple[int, ...]


Item = Block | int
"""Block, or a node that is drawn alone."""


def backward_of(network: Network) -> list[bool]:
    """Tell which nodes are of the backward pass: they write `d(...)`, or read what such a one does.

    Gradients are named so in training steps. What runs after the first of them for such nodes
    alone, as a weight that is transposed, or updates weights, is of the backward pass too.
    """
    count = len(network.steps)
    after = Neighbours.of(network.node_count, [(a, b) for a, b, _ in network.edges]).after
    found = [False] * network.node_count
    waiting = [
        step
        for step in range(count)
        if any(network.values[value].name.startswith("d(") for value in network.writes[step])
    ]
    while waiting:
        node = waiting.pop()
        if not found[node]:
            found[node] = True
            waiting.extend(after[node])
    first = found.index(True) if True in found else count
    for step in reversed(range(first, count)):
        found[step] = found[step] or (
            all(found[reader] for reader in after[step])
            if after[step]
            else all(network.values[value].kind == "outside" for value in network.writes[step])
        )
    return found


def grouped(network: Network, nodes: Sequence[int], is_backward: Sequence[bool]) -> list[Item]:
    """Group nodes so that no cycle joins the groups; inputs stay alone.

    Modules are those in the names of nodes, at the finest level that has few enough of them; else,
    as for modules of torch, those in the names of weights, where a step without any goes with the
    one before it, or in the backward pass with the one after it. Without such names, pieces of the
    plan's order are cut where the fewest values pass.
    """
    steps = [node for node in nodes if node < len(network.steps)]
    inputs: list[Item] = [node for node in nodes if node >= len(network.steps)]
    named = {step: _module(network, step) for step in steps}
    blocks = _by_module(named, is_backward)
    if not blocks or len(blocks) > len(steps) / 3:
        blocks = _by_module(_weighed(network, steps, is_backward), is_backward)
    if not blocks or len(blocks) > len(steps) / 3:
        blocks = _pieces(network, steps, is_backward)
    return [*inputs, *(b.nodes[0] if len(b.nodes) == 1 else b for b in _acyclic(network, blocks))]


def _by_module(modules: Mapping[int, str], is_backward: Sequence[bool]) -> list[Block]:
    """Group steps by module; empty if they are not of several modules."""
    parts = {step: module_parts(module) for step, module in modules.items()}
    depth = max((len(each) for each in parts.values()), default=0)
    names = {step: "".join(each[:depth]) for step, each in parts.items()}
    while depth > 1 and len(set(names.values())) > GROUPS_MAX:
        depth -= 1
        names = {step: "".join(each[:depth]) for step, each in parts.items()}
    if not 1 < len(set(names.values())) <= GROUPS_MAX:
        return []
    found: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for step, name in names.items():
        found[name, is_backward[step]].append(step)
    blocks = []
    for (name, flag), members in found.items():
        if name and len(members) > _SMALL:
            blocks.append(Block(f"{name}, backward" if flag else name, tuple(members)))
        else:
            blocks += [Block("", (member,)) for member in members]
    return blocks


def _module(network: Network, step: int) -> str:
    names = [network.steps[step].name]
    names += [network.values[value].name for value in network.writes[step]]
    modules = (module_of(name.removeprefix("d(").partition(")")[0]) for name in names)
    return next(filter(None, modules), "")


def _weighed(network: Network, steps: Sequence[int], is_backward: Sequence[bool]) -> dict[int, str]:
    """Return the modules of weights that steps read first, or make gradients of, and fill gaps.

    A module has several weights, as a weight and a bias; a single one may be a number of a step.
    """
    found = dict.fromkeys(steps, "")
    weights = {weight.name: module_of(weight.name) for weight in network.picture.weights}
    counts = Counter(weights.values())
    names = {name: module for name, module in weights.items() if counts[module] > 1}
    for step in steps:
        written = (network.values[value].name for value in network.writes[step])
        gradients = (name[2:-1] for name in written if name.startswith("d("))
        found[step] = next((names[name] for name in gradients if name in names), "")
    for weight in network.picture.weights:
        if weight.step in found and not is_backward[weight.step]:
            found[weight.step] = found[weight.step] or names.get(weight.name, "")
    for flag, way in ((False, sorted(found)), (True, sorted(found, reverse=True))):
        last = ""
        for step in way:
            if is_backward[step] is flag:
                last = found[step] = found[step] or last
    return found


def _acyclic(network: Network, blocks: Sequence[Block]) -> list[Block]:
    """Split blocks that lie on a cycle of blocks into runs of the plan's order."""
    found = list(blocks)
    while True:
        owner = {node: index for index, block in enumerate(found) for node in block.nodes}
        edges = [
            (owner[a], owner[b])
            for a, b, _ in network.edges
            if a in owner and b in owner and owner[a] != owner[b]
        ]
        down = in_order(Neighbours.of(len(found), edges))
        up = in_order(Neighbours.of(len(found), [(b, a) for a, b in edges]))
        stuck = set(range(len(found))).difference(down, up)
        if not stuck:
            return sorted(found, key=lambda block: min(block.nodes))
        kept: list[Block] = []
        for index, block in enumerate(found):
            kept += _runs(block, owner) if index in stuck else [block]
        found = kept


def _runs(block: Block, owner: dict[int, int]) -> list[Block]:
    """Divide a block where steps of others come between its own."""
    ordered = sorted(owner)
    place = {node: index for index, node in enumerate(ordered)}
    runs: list[list[int]] = []
    for node in sorted(block.nodes):
        if runs and place[node] == place[runs[-1][-1]] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    return [Block(block.name, tuple(run)) for run in runs]


def _pieces(network: Network, steps: Sequence[int], is_backward: Sequence[bool]) -> list[Block]:
    """Cut the plan's order into pieces where the fewest values pass from one to the next."""
    ordered = sorted(steps)
    passing = _passing(network, ordered)
    wanted = min(_PIECE_MAX, max(_PIECE_MIN, round(1.5 * len(ordered) ** 0.5)))
    blocks, start = [], 0
    while start < len(ordered):
        least, most = start + wanted * 2 // 3, start + wanted * 4 // 3
        if most >= len(ordered) - 1:
            stop = len(ordered)
        else:
            stop = min(range(least, most), key=lambda at: (passing[at], abs(at - start - wanted)))
        turn = next(
            (at for at in range(start + 1, stop)
             if is_backward[ordered[at]] != is_backward[ordered[at - 1]]),
            stop,
        )  # fmt: skip
        members = tuple(ordered[start:turn])
        blocks.append(Block(_span(members), members))
        start = turn
    return blocks


def _passing(network: Network, ordered: Sequence[int]) -> list[int]:
    """Count the values that pass from the steps before each place to those from it on."""
    place = {step: index for index, step in enumerate(ordered)}
    changes: Counter[int] = Counter()
    for value in network.values:
        makers = [place[maker] for maker in value.makers if maker in place]
        readers = [place[reader] for reader in value.readers if reader in place]
        if makers and readers:
            changes[min(makers) + 1] += 1
            changes[max(readers) + 1] -= 1
    found, count = [], 0
    for index in range(len(ordered) + 1):
        count += changes[index]
        found.append(count)
    return found


def _span(members: Sequence[int]) -> str:
    return f"steps {members[0]:,} to {members[-1]:,}"

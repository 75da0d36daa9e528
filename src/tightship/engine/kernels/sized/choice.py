"""An If of graphs all of whose nodes have operators of the core."""

from collections.abc import Callable, Iterable, Sequence

from tightship._core import SizedOperator, SizedProgram
from tightship.graph import DType, Graph, Node
from tightship.graph.layout import size_bytes

CONSTANT_BYTES_MAX = 1 << 20
"""Most bytes of constants of a branch, which are kept as arrays."""
ABSENT = -1
NUMBERS = frozenset({
    DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT16,
    DType.UINT32, DType.UINT64, DType.FLOAT16, DType.FLOAT32, DType.FLOAT64,
})  # fmt: skip
"""Types of elements that NumPy has itself, whose arrays the core can read."""

Branch = tuple[SizedProgram, list[int], list[int], Sequence[tuple[int, object]]]
MakeOperator = Callable[[Node], SizedOperator | None]


def choice(node: Node, make: MakeOperator) -> SizedOperator | None:
    """Make an If; None if a node of a branch has no operator.

    Args:
        node: The If.
        make: Makes the operator of a node of a branch.
    """
    branches = []
    for name in ("else_branch", "then_branch"):
        graph = node.attributes.get(name)
        branch = _branch(graph, make) if isinstance(graph, Graph) else None
        if branch is None:
            return None
        branches.append(branch)
    names = [name for name, value in node.attributes.items() if isinstance(value, Graph)]
    otherwise, then = branches
    return SizedOperator.choice(otherwise, then, names[0] == "then_branch")


def _branch(graph: Graph, make: MakeOperator) -> Branch | None:
    constants = {**graph.known, **graph.constants}
    if not all(constant.dtype in NUMBERS for constant in constants.values()):
        return None
    total = sum(size_bytes(constant.dtype, constant.shape) for constant in constants.values())
    if total > CONSTANT_BYTES_MAX:
        return None
    numbers: dict[str, int] = {}

    def numbered(names: Iterable[str]) -> list[int]:
        return [numbers.setdefault(name, len(numbers)) if name else ABSENT for name in names]

    captured, program = numbered(graph.captures), SizedProgram()
    arrays = [(numbered([name])[0], constant.array()) for name, constant in constants.items()]
    nodes = [n for n in graph.nodes if not all(name in graph.known for name in n.writes)]
    last = {name: index for index, node in enumerate(nodes) for name in node.reads}
    kept = {*constants, *graph.captures, *graph.outputs}
    for index, node in enumerate(nodes):
        operator = make(node)
        if operator is None:
            return None
        used = dict.fromkeys((*node.reads, *node.writes))
        dying = [name for name in used if name not in kept and last.get(name, index) == index]
        program.add(operator, numbered(node.operands), numbered(node.outputs), numbered(dying))
    results = numbered(graph.outputs)
    program.reserve(len(numbers))
    return program, captured, results, arrays

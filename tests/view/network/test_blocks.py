"""Blocks of large networks."""

from dataclasses import replace

from tests.view.network import networks
from tightship.view.network.blocks import Block, backward_of, grouped
from tightship.view.network.network import network_of
from tightship.view.network.ranks import Neighbours, in_order
from tightship.view.picture import Weight


def blocks_of(picture):
    network = network_of(picture)
    items = grouped(network, range(network.node_count), backward_of(network))
    covered = [n for item in items for n in (item.nodes if isinstance(item, Block) else (item,))]
    assert sorted(covered) == list(range(network.node_count))
    owner = {node: at for at, item in enumerate(items)
             for node in (item.nodes if isinstance(item, Block) else (item,))}  # fmt: skip
    edges = [(owner[a], owner[b]) for a, b, _ in network.edges if owner[a] != owner[b]]
    assert len(in_order(Neighbours.of(len(items), edges))) == len(items)
    return items


def test_modules_are_blocks_at_the_finest_level_that_is_small_enough():
    items = blocks_of(networks.layers(4, 12))
    names = [item.name for item in items if isinstance(item, Block)]
    assert names == [f"/h.{layer}/{part}" for layer in range(4) for part in ("attn", "mlp")]
    many = blocks_of(networks.layers(30, 12))
    assert [item.name for item in many if isinstance(item, Block)] == [
        f"/h.{layer}" for layer in range(30)
    ]


def test_without_modules_the_order_is_cut_in_pieces():
    items = blocks_of(networks.chain(600))
    sizes = [len(item.nodes) for item in items if isinstance(item, Block)]
    assert sum(sizes) == 600
    assert min(sizes) >= 8
    assert max(sizes) <= 80
    assert items[1].name.startswith("steps 0 to ")


def test_pieces_are_cut_where_few_values_pass():
    rows, value = [], "x"
    for unit in range(30):
        names = [f"v{unit}_{branch}" for branch in range(16)]
        rows += [("Conv", [value], [name]) for name in names]
        value = f"sum{unit}"
        rows.append(("Sum", names, [value]))
    items = blocks_of(networks.picture_of(rows))
    last = [item.nodes[-1] for item in items if isinstance(item, Block)]
    assert all(node % 17 == 16 for node in last)


def test_modules_that_read_each_other_are_split():
    rows = [("Relu", [f"v{i - 1}" if i else "x"], [f"v{i}"]) for i in range(24)]
    made = networks.picture_of(rows)
    names = [f"/{'ab'[i // 4 % 2]}/{i}" for i in range(24)]
    steps = tuple(replace(s, name=n) for s, n in zip(made.steps, names, strict=True))
    items = blocks_of(replace(made, steps=steps))
    assert [(item.name, len(item.nodes)) for item in items if isinstance(item, Block)] == [
        ("/a", 4), ("/b", 4),
    ] * 3  # fmt: skip


def test_the_backward_pass_is_all_that_gradients_lead_to():
    network = network_of(networks.perceptron())
    assert backward_of(network) == [False] * 4 + [True] * 4 + [False]


def test_what_runs_for_the_backward_pass_alone_is_of_it():
    rows = [
        ("Conv", ["x"], ["c"]),
        ("Loss", ["c"], ["d(c)"]),
        ("Transpose", ["c"], ["t"]),
        ("Gemm", ["d(c)", "t"], ["d(w)"]),
        ("Sum", ["c"], ["s"]),
        ("Update", ["s"], ["w.next"]),
        ("Relu", ["c"], ["y"]),
    ]
    picture = networks.picture_of(rows, outputs=("w.next",))
    network = network_of(replace(picture, outputs={}))
    assert backward_of(network) == [False, True, True, True, True, True, False, False]


def test_modules_of_weights_serve_where_nodes_have_none():
    made = networks.chain(48)
    weights = [
        Weight(f"blocks.{i // 12}.{('up', 'down')[i % 12 // 6]}.{kind}", 64, "", i)
        for i in range(0, 48, 6)
        for kind in ("weight", "bias")
    ]
    weights.append(Weight("eq.other", 4, "", 7))
    items = blocks_of(replace(made, weights=tuple(weights)))
    assert [(item.name, len(item.nodes)) for item in items if isinstance(item, Block)] == [
        (f"blocks.{layer}.{part}", 6) for layer in range(4) for part in ("up", "down")
    ]

"""Pairs of models, of which the second takes more memory for one known reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, HALF, INT8, INT32, INT64 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.INT8,
    TensorProto.INT32,
    TensorProto.INT64,
)


@dataclass(frozen=True)
class Regression:
    """Two models, how each is planned, and what must be named as the cause.

    `names` are the tensors or weights of which any is the right one, `says` is in the sentence.
    """

    old: bytes
    new: bytes
    kind: str
    names: tuple[str, ...]
    says: str = ""
    old_plan: Mapping[str, object] = field(default_factory=dict)
    new_plan: Mapping[str, object] = field(default_factory=dict)


def node(operator, inputs, output, **attributes):
    """A node named as exporters name it."""
    outputs = output.split()
    return helper.make_node(
        operator, inputs.split(), outputs, name=f"/net/{outputs[0]}/{operator}", **attributes
    )


def model(nodes, inputs, outputs, **weights) -> bytes:
    """Bytes of a model; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made: ModelProto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )
    return made.SerializeToString()


def floats(*shape: int):
    return np.full(shape, 0.01, np.float32)


def convs(nodes, channels: int = 16, size: int = 64, batch: int = 1, **weights) -> bytes:
    """A model of images `x` with `channels` of `size` pixels squared, to the output `y`."""
    shape = [batch, channels, size, size]
    weights = {"w": floats(channels, channels, 3, 3), **weights}
    return model(nodes, [("x", FLOAT, shape)], [("y", FLOAT, None)], **weights)


def conv(source: str, result: str, **attributes):
    return node("Conv", f"{source} w", result, pads=[1, 1, 1, 1], **attributes)


def read_before_its_activation() -> Regression:
    """The input of an activation is added later, so that the two are no longer one step."""
    old = [conv("x", "a"), node("Relu", "a", "b"), conv("b", "c"), node("Add", "c b", "y")]
    new = [*old[:-1], node("Add", "c b", "d"), node("Mul", "d a", "y")]
    return Regression(convs(old), convs(new), "fusion lost", ("a",))


def pass_left_out() -> Regression:
    nodes = [conv("x", "a"), node("Relu", "a", "b"), conv("b", "c"), node("Add", "c b", "d"),
             node("Mul", "d b", "y")]  # fmt: skip
    made = convs(nodes)
    return Regression(made, made, "fusion lost", ("a", "c", "d"),
                      new_plan={"without": ("fuse_activation",)})  # fmt: skip


def attention(scores: str) -> bytes:
    """One head of attention over 512 tokens; `scores` is the name that softmax reads."""
    shape = [1, 8, 512, 64]
    nodes = [
        node("Transpose", "k", "t", perm=[0, 1, 3, 2]),
        node("MatMul", "q t", "s"),
        node("Erf", "s", "e") if scores == "e" else node("Identity", "s", "i"),
        node("Softmax", "e" if scores == "e" else "i", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    inputs = [(name, FLOAT, shape) for name in "qkv"]
    return model(nodes, inputs, [("y", FLOAT, shape)])


def attention_of_other_scores() -> Regression:
    """A function of the scores, which no kernel of attention computes."""
    return Regression(attention("s"), attention("e"), "fusion lost", ("s", "e", "p", "t"))


def read_at_the_end(source: str) -> bytes:
    nodes = []
    for before, made, after in ("xab", "bcd", "def", "fgh", "hij"):
        nodes += [conv(before, made), node("Tanh", made, after)]
    return convs([*nodes, node("Add", f"j {source}", "y")])


def skip_connection_from_the_start() -> Regression:
    return Regression(read_at_the_end("h"), read_at_the_end("b"), "lives longer", ("b",))


def wider_type_within() -> Regression:
    def made(dtype):
        nodes = [node("Cast", "x", "a", to=dtype), node("Transpose", "a", "b", perm=[1, 0]),
                 node("Cast", "b", "y", to=TensorProto.BOOL)]  # fmt: skip
        return model(nodes, [("x", TensorProto.BOOL, [512, 1024])], [("y", TensorProto.BOOL, None)])

    return Regression(made(INT32), made(INT64), "type", ("a", "b"))


def wider_input_type() -> Regression:
    def made(dtype):
        nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Neg", "a", "y")]
        return model(nodes, [("x", dtype, [512, 1024])], [("y", dtype, None)])

    return Regression(made(INT32), made(INT64), "type", ("x",))


def larger_batch() -> Regression:
    nodes = [conv("x", "a"), node("Relu", "a", "b"), conv("b", "c"), node("Relu", "c", "y")]
    return Regression(convs(nodes), convs(nodes, batch=4), "shape", ("x",))


def longer_text() -> Regression:
    nodes = [node("MatMul", "x w", "a"), node("Gelu", "a", "b"), node("MatMul", "b u", "y")]
    made = model(nodes, [("x", FLOAT, ["batch", "length", 64])], [("y", FLOAT, None)],
                 w=floats(64, 256), u=floats(256, 64))  # fmt: skip
    return Regression(made, made, "shape", ("x",), "", {"shapes": {"batch": 1, "length": 128}},
                      {"shapes": {"batch": 1, "length": 2048}})  # fmt: skip


def concatenation_moved_before_a_chain() -> Regression:
    """Joined before the others run rather than after them, so that it is live meanwhile."""

    def made(*, first: bool):
        join = [node("Concat", "a b", "j", axis=1)]
        chain = [node("Tanh", "x", "c"), conv("c", "d"), node("Tanh", "d", "e"), conv("e", "f"),
                 node("GlobalAveragePool", "f", "g")]  # fmt: skip
        ends = [node("GlobalAveragePool", "j", "h"), node("Concat", "h g", "y", axis=1)]
        parts = [conv("x", "a"), conv("x", "b")]
        ordered = [*parts, *join, *chain, *ends] if first else [*chain, *parts, *join, *ends]
        return convs(ordered)

    return Regression(made(first=False), made(first=True), "lives longer", ("j", "a", "b"))


def concatenation_that_copies() -> Regression:
    """A part of a concatenation is read in another place too, and is copied into it."""

    def made(axis: int):
        nodes = [conv("x", "a"), conv("x", "b"), node("Concat", "a b", "j", axis=axis),
                 node("Tanh", "j", "t"), node("ReduceMean", "t axes", "y", keepdims=0)]  # fmt: skip
        return convs(nodes, axes=np.array([1, 2, 3], np.int64))

    return Regression(made(2), made(2), "copied", ("a", "b", "j"),
                      new_plan={"without": ("elide_concat",)})  # fmt: skip


def unpacked_weight() -> Regression:
    """A matrix of 4 bits that the file has as floats."""
    x, y = [("x", FLOAT, [8, 512])], [("y", FLOAT, None)]
    product = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], name="/net/y/MatMul",
                               domain="com.microsoft", K=512, N=512, bits=4,
                               block_size=32)  # fmt: skip
    blocks, scales = np.ones((512, 16, 16), np.uint8), floats(512, 16)
    packed = model([product], x, y, w=blocks, s=scales)
    plain = model([node("MatMul", "x w", "y")], x, y, w=floats(512, 512))
    return Regression(packed, plain, "type", ("w",), "float32 instead of")


def gathered_weight_of_floats() -> Regression:
    def made(dtype):
        nodes = [node("Gather", "w x", "a"), node("Cast", "a", "y", to=FLOAT)]
        table = np.ones((4096, 64), dtype)
        return model(nodes, [("x", INT64, [8])], [("y", FLOAT, None)], w=table)

    return Regression(made(np.float16), made(np.float32), "type", ("w",))


def wider_layer() -> Regression:
    def made(width: int):
        nodes = [node("MatMul", "x w", "a"), node("Gelu", "a", "b"), node("MatMul", "b u", "y")]
        return model(nodes, [("x", FLOAT, [4, 256])], [("y", FLOAT, None)],
                     w=floats(256, width), u=floats(width, 256))  # fmt: skip

    return Regression(made(512), made(1024), "shape", ("w", "u"))


def larger_vocabulary() -> Regression:
    def made(rows: int):
        return model([node("Gather", "table x", "y")], [("x", INT64, [4])], [("y", FLOAT, None)],
                     table=floats(rows, 64))  # fmt: skip

    return Regression(made(4096), made(8192), "shape", ("table",))


def untied_weight() -> Regression:
    def made(last: str, **more):
        nodes = [node("MatMul", "x w", "a"), node("Gelu", "a", "b"),
                 node("MatMul", f"b {last}", "c"), node("Gelu", "c", "y")]  # fmt: skip
        return model(nodes, [("x", FLOAT, [4, 256])], [("y", FLOAT, None)],
                     w=floats(256, 256), **more)  # fmt: skip

    return Regression(made("w"), made("v", v=2 * floats(256, 256)), "new", ("v",))


def weight_in_two_layouts() -> Regression:
    """A matrix that two kernels read, of which one wants it in a layout of its own."""

    def made(last: str):
        nodes = [node("MatMul", "x w", "a"), node("Gelu", "a", "b"),
                 node("MatMul", "b w", "c"), node(last, "c", "y")]  # fmt: skip
        return model(nodes, [("x", FLOAT, [4, 256])], [("y", FLOAT, None)], w=floats(256, 256))

    return Regression(made("Gelu"), made("Sin"), "packed twice", ("w",))


def larger_stride_of_memory() -> Regression:
    """The first convolution no longer halves the image."""

    def made(stride: int):
        nodes = [conv("x", "a", strides=[stride, stride]), node("Tanh", "a", "b"), conv("b", "c"),
                 node("GlobalAveragePool", "c", "y")]  # fmt: skip
        return convs(nodes)

    return Regression(made(2), made(1), "shape", ("a", "b", "c"))


def branch_more() -> Regression:
    def made(*, has_branch: bool):
        nodes = [conv("x", "a"), node("Tanh", "a", "b"), conv("b", "c")]
        if has_branch:
            nodes += [conv("x", "d"), node("Sin", "d", "e"), node("Add", "c e", "f")]
        source = "f" if has_branch else "c"
        return convs([*nodes, node("GlobalAveragePool", source, "y")])

    old, new = made(has_branch=False), made(has_branch=True)
    says = "read until `/net/d/Conv`, a step of the new plan alone"
    return Regression(old, new, "lives longer", ("x.acdb",), says)


def output_more() -> Regression:
    nodes = [node("MatMul", "x w", "a"), node("Sin", "a", "b"), node("MatMul", "b u", "y")]
    weights = {"w": floats(64, 4096), "u": floats(4096, 8)}
    inputs, y = [("x", FLOAT, [64, 64])], ("y", FLOAT, None)
    old = model(nodes, inputs, [y], **weights)
    new = model([*nodes, node("Neg", "b", "z")], inputs, [y, ("z", FLOAT, None)], **weights)
    return Regression(old, new, "new", ("z",), "output of the new plan")


def both_branches_before_they_shrink() -> Regression:
    """Two branches run side by side rather than one after the other."""

    def made(*, in_turn: bool):
        one = [conv("x", "a"), node("Tanh", "a", "b"), node("GlobalAveragePool", "b", "c")]
        two = [conv("x", "d"), node("Tanh", "d", "e"), node("GlobalAveragePool", "e", "f")]
        ends = [node("Concat", "c f", "y", axis=1)]
        nodes = [*one, *two] if in_turn else [*one[:2], *two[:2], one[2], two[2]]
        return convs([*nodes, *ends])

    names = ("a", "b", "d", "e")
    return Regression(made(in_turn=True), made(in_turn=False), "lives longer", names)


def copy_by_padding() -> Regression:
    def made(*, is_padded: bool):
        source = "p" if is_padded else "a"
        pad = [node("Pad", "a pads", "p")] if is_padded else []
        nodes = [
            conv("x", "a"),
            *pad,
            node("Tanh", source, "t"),
            node("GlobalAveragePool", "t", "y"),
        ]
        return convs(nodes, pads=np.array([0, 0, 8, 8, 0, 0, 8, 8], np.int64))

    return Regression(made(is_padded=False), made(is_padded=True), "copied", ("p", "a"))


def input_kept_for_later() -> Regression:
    """An activation can no longer write over its input."""

    def made(*, is_kept: bool):
        last = node("Mul", "c a", "y") if is_kept else node("Mul", "c c", "y")
        nodes = [node("MatMul", "x w", "a"), node("Sin", "a", "b"), node("Cos", "b", "c"), last]
        return model(nodes, [("x", FLOAT, [512, 64])], [("y", FLOAT, None)], w=floats(64, 512))

    old, new = made(is_kept=False), made(is_kept=True)
    return Regression(old, new, "own bytes", ("b",), "was in the bytes of `a`")


def more_threads() -> Regression:
    made = convs([conv("x", "a"), node("Tanh", "a", "b"), conv("b", "y")])
    return Regression(made, made, "kernels", ("threads",), "4 instead of 1",
                      new_plan={"threads": 4})  # fmt: skip


REGRESSIONS: Mapping[str, Callable[[], Regression]] = {
    each.__name__: each
    for each in (
        read_before_its_activation,
        pass_left_out,
        attention_of_other_scores,
        skip_connection_from_the_start,
        wider_type_within,
        wider_input_type,
        larger_batch,
        longer_text,
        concatenation_moved_before_a_chain,
        concatenation_that_copies,
        unpacked_weight,
        gathered_weight_of_floats,
        wider_layer,
        larger_vocabulary,
        untied_weight,
        weight_in_two_layouts,
        larger_stride_of_memory,
        branch_more,
        output_more,
        both_branches_before_they_shrink,
        copy_by_padding,
        input_kept_for_later,
        more_threads,
    )
}

"""Pictures with a network: the MXNet memory note's, chains, and networks of many modules."""

from dataclasses import replace

from tests.view import plans
from tightship.view.picture import Rectangle, Step


def picture_of(rows, inputs=("x",), outputs=(), title="net.onnx", size=1024):
    """A picture of steps, each a row of operator, reads and writes; values are placed first fit.

    A write is a name, or a name and a size; an output lies outside the arena.
    """
    wanted, steps = [], []
    last = {name: index for index, (_, reads, _) in enumerate(rows) for name in reads}
    for index, (operator, reads, writes) in enumerate(rows):
        sized = [each if isinstance(each, tuple) else (each, size) for each in writes]
        names = tuple(name for name, _ in sized)
        wanted += [
            (name, amount, index, max(index, last.get(name, 0)) + 1, "activation")
            for name, amount in sized
            if name not in outputs
        ]
        steps.append(Step(f"{operator}_{index}", operator, "", 0, None, tuple(reads), names))
    made = plans.picture(plans.first_fit(wanted), steps, title=title)
    facts = {"inputs": dict.fromkeys(inputs, "1x4 float32"), "outputs": dict.fromkeys(outputs, "")}
    return replace(made, **facts)


def perceptron():
    """The note's two-layer perceptron with its gradients; activations are written in place."""
    rows = [
        ("FullyConnected", ["A"], ["fc1"]),
        ("Activation", ["fc1"], ["act1"]),
        ("FullyConnected", ["act1"], ["fc2"]),
        ("Softmax", ["fc2"], ["out"]),
        ("SoftmaxGrad", ["out"], ["d(fc2)"]),
        ("FullyConnectedGrad", ["d(fc2)", "act1"], ["d(act1)"]),
        ("ActivationGrad", ["d(act1)", "act1"], ["d(fc1)"]),
        ("FullyConnectedGrad", ["d(fc1)", "A"], ["d(A)"]),
    ]
    return picture_of(rows, inputs=("A",), outputs=("d(A)",), title="perceptron")


def in_place():
    """A value, one over its bytes, and an output."""
    steps = [
        Step("conv", "Conv", "onednn", 64, None, ("x",), ("c",)),
        Step("relu", "Relu", "native", 64, None, ("c",), ("r",)),
        Step("gemm", "Gemm", "onednn", 64, None, ("r",), ("y",)),
    ]
    rectangles = [
        Rectangle("c", 64, 0, 0, 2),
        Rectangle("r", 64, 0, 1, 3, shares_with="c"),
        Rectangle("conv.scratch", 32, 64, 0, 1, "scratch"),
    ]
    made = plans.picture(rectangles, steps)
    return replace(made, inputs={"x": "1x4 float32"}, outputs={"y": "1x2 float32"})


def chain(count, name="step"):
    """A chain of steps without modules in their names."""
    rows = [
        ("Relu" if index % 3 else "Conv", [f"v{index - 1}" if index else "x"], [f"v{index}"])
        for index in range(count)
    ]
    made = picture_of(rows)
    return replace(made, steps=tuple(replace(s, name=f"{name}{i}")
                                     for i, s in enumerate(made.steps)))  # fmt: skip


def layers(count=12, inner=50):
    """A decoder of so many layers, each a module with modules in it and a residual sum."""
    rows, names = [], []
    value = "x"
    for layer in range(count):
        first = value
        for index in range(inner):
            part = ("attn", "mlp")[index * 2 // inner]
            made = f"/h.{layer}/{part}/op_{index}_output"
            reads = [value, first] if index == inner - 1 else [value]
            rows.append(("Add" if index == inner - 1 else "MatMul", reads, [made]))
            names.append(f"/h.{layer}/{part}/op_{index}")
            value = made
    made = picture_of(rows, outputs=(value,), title="decoder.onnx")
    steps = [replace(step, name=name) for step, name in zip(made.steps, names, strict=True)]
    return replace(made, steps=tuple(steps))

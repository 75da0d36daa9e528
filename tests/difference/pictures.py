"""Small plans by hand, for comparisons."""

from tightship.view.picture import Picture, Rectangle, Step, Weight


def step(name, operator, live=0):
    return Step(name, operator, "native loop", live)


def tensor(name, size, offset, start, stop, **more):
    return Rectangle(name, size, offset, start, stop, **{"type": f"{size // 4} float32", **more})


def plan(steps, tensors, *, arena=None, weights=(), key=None, inputs=None, outputs=None, **parts):
    """A plan whose steps get the live bytes of tensors that share nothing."""
    counted = [
        Step(s.name, s.operator, s.kernel, sum(t.size_bytes for t in tensors if t.is_live(i)))
        for i, s in enumerate(steps)
    ]
    top = max((t.offset_bytes + t.size_bytes for t in tensors), default=0)
    sizes = {
        "weights": parts.get("weights_bytes", sum(w.size_bytes for w in weights)),
        "inputs and outputs": parts.get("io_bytes", 0),
        "runtime": parts.get("runtime_bytes", 0),
    }
    return Picture(
        title=parts.get("title", "model.onnx"),
        arena_bytes=top if arena is None else arena,
        lower_bound_bytes=0,
        rectangles=tuple(tensors),
        steps=tuple(counted),
        parts=sizes,
        key=key or {},
        inputs=inputs or {},
        outputs=outputs or {},
        weights=tuple(weights),
    )


def weight(name, size, described=""):
    return Weight(name, size, described or f"{size // 4} float32", 0)


def chain(*sizes, names=None, operators=None):
    """A plan in which each step reads the tensor before and makes the next."""
    names = names or [f"t{i}" for i in range(len(sizes))]
    operators = operators or [f"Op{i}" for i in range(len(sizes))]
    tensors, offset = [], 0
    for index, size in enumerate(sizes):
        tensors.append(tensor(names[index], size, offset, index, min(index + 2, len(sizes))))
        offset += size
    steps = [
        step(f"make {name}", operator) for name, operator in zip(names, operators, strict=True)
    ]
    return plan(steps, tensors)

"""Memory plans to draw: made of simple offsets, without a model or a planner."""

from dataclasses import replace

from tightship.view.picture import Picture, Rectangle, Step

ALIGNMENT = 64


def first_fit(wanted):
    """Rectangles at the lowest free offsets; `wanted` is (name, size, start, stop, kind)."""
    placed = []
    for name, size, start, stop, kind in wanted:
        offset = 0
        for other in sorted(placed, key=lambda r: r.offset_bytes):
            if other.start_step < stop and start < other.stop_step:
                if offset + size <= other.offset_bytes:
                    break
                offset = max(offset, other.offset_bytes + other.size_bytes)
        placed.append(Rectangle(name, size, offset, start, stop, kind))
    return placed


def picture(rectangles, steps, title="model.onnx", parts=None):
    loads = [sum(r.size_bytes for r in rectangles if r.is_live(i)) for i in range(len(steps))]
    arena = max((r.offset_bytes + r.size_bytes for r in rectangles), default=0)
    bound = max(loads, default=0)
    total = sum(r.size_bytes for r in rectangles)
    return Picture(
        title=title,
        arena_bytes=arena,
        lower_bound_bytes=bound,
        rectangles=tuple(rectangles),
        steps=tuple(replace(s, live_bytes=load) for s, load in zip(steps, loads, strict=True)),
        parts=parts or {"weights": 102_442_112, "inputs and outputs": 606_208, "runtime": 31 << 20},
        strategy="planned",
        strategies={
            "none": total,
            "in_place": total * 3 // 4,
            "share": arena * 5 // 4,
            "in_place+share": arena * 9 // 8,
            "greedy_by_size": arena,
            "best_fit": arena * 17 // 16,
            "planned": arena,
        },
        key={"threads": "2", "cpu": "AVX2", "oneDNN": "3.1.0"},
        inputs={"data": "float32 1x3x224x224"},
        outputs={"probability": "float32 1x1000"},
    )


def cnn(steps_count=60, title="resnet50.onnx"):
    """A network that narrows, with a residual add each fourth step and some scratch."""
    wanted, steps = [], []
    size = 3_211_264
    for i in range(steps_count):
        if i % 12 == 11:
            size = max(size // 2, 8_192)
        adds = i % 4 == 3
        operator = "Add" if adds else "MaxPool" if i == 1 else "Conv" if i % 4 else "Relu"
        if i == steps_count - 1:
            operator = "Softmax"
        stop = i + 5 if i % 4 == 3 else i + 2
        wanted.append(
            (
                f"stage{i // 12}/block{i // 4}/{operator.lower()}_{i}",
                size,
                i,
                min(stop, steps_count),
                "activation",
            )
        )
        if operator == "Conv" and i % 3 == 0:
            wanted.append((f"stage{i // 12}/conv_{i}.scratch", size // 3, i, i + 1, "scratch"))
        steps.append(Step(f"/stage{i // 12}/{operator}_{i}", operator, "onednn jit:avx2", 0))
    rectangles = first_fit(sorted(wanted, key=lambda w: -w[1]))
    return picture(sorted(rectangles, key=lambda r: r.start_step), steps, title)


def wide(count=10_000, lanes=40):
    """`count` buffers in lanes of a fixed height, so that placing them takes no search."""
    operators = (
        "Conv",
        "MatMul",
        "Add",
        "Softmax",
        "LayerNormalization",
        "Gelu",
        "Transpose",
        "Mul",
        "Slice",
    )
    heights = [4096 << (lane * 7 % 6) for lane in range(lanes)]
    bases = [sum(heights[:lane]) for lane in range(lanes)]
    ends = [0] * lanes
    rectangles = []
    for i in range(count):
        lane = i % lanes
        start = ends[lane]
        stop = start + 1 + (i * 2_654_435_761 >> 7) % (3 + lane)
        ends[lane] = stop
        size = heights[lane] - (i * 40_503 % (heights[lane] // 2)) // ALIGNMENT * ALIGNMENT
        rectangles.append(Rectangle(f"layer.{i // 40}/value_{i}", size, bases[lane], start, stop))
    width = max(ends)
    steps = [Step(f"/node_{i}", operators[i * 7 % 9], "onednn jit:avx2", 0) for i in range(width)]
    loads = [0] * (width + 1)
    for r in rectangles:
        loads[r.start_step] += r.size_bytes
        loads[r.stop_step] -= r.size_bytes
    running, steps_loaded = 0, []
    for step, change in zip(steps, loads, strict=False):
        running += change
        steps_loaded.append(replace(step, live_bytes=running))
    base = picture([], [], title="encoder-large.onnx")
    return replace(
        base,
        rectangles=tuple(rectangles),
        steps=tuple(steps_loaded),
        arena_bytes=sum(heights),
        lower_bound_bytes=max(s.live_bytes for s in steps_loaded),
        strategies={"planned": sum(heights)},
    )


def bounded():
    """A small network with a step whose output depends on data."""
    exact = cnn(12, "detector.onnx")
    steps = list(exact.steps)
    steps[9] = replace(steps[9], operator="NonZero", dynamic_reason="rows depend on data")
    return replace(exact, steps=tuple(steps))

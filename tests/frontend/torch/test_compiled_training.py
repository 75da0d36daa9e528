"""Training by `torch.compile`: numbers, bytes held, and what is run by torch instead."""

import copy
import gc
import warnings

import pytest

from tests.frontend.torch.case import OF_TORCH, Function, torch
from tests.frontend.torch.test_models import Language, resnet
from tests.processor import HAS_AVX512
from tightship import torch_compile
from tightship.errors import InputError
from tightship.torch_compile import compile_graph

nn = torch.nn
pytestmark = OF_TORCH
STEPS = torch_compile._STEPS


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    gc.collect()
    STEPS.end_forgotten()
    assert not STEPS.begun
    assert not STEPS.graphs
    assert STEPS.arenas.used_bytes == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # one reports what torch runs itself
        yield


def compiled(module, **options):
    return torch.compile(module, backend=compile_graph, options=options or None)


def perceptron():
    return nn.Sequential(nn.Linear(12, 96), nn.GELU(), nn.Linear(96, 3))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip


def gradients(module, run, *inputs):
    module.zero_grad()
    (run(*inputs).sin() * torch.tensor(1.5)).sum().backward()
    return [each.grad.clone() for each in module.parameters()]


def assert_gradients(module, run, *inputs):
    found, wanted = gradients(module, run, *inputs), gradients(module, module, *inputs)
    scale = max(each.abs().max().item() for each in wanted)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5 * scale)


def by_momentum(weights):
    return torch.optim.SGD(weights, 0.05, momentum=0.9)


def by_moments(weights):
    return torch.optim.AdamW(weights, 0.01)


STEPPED = {
    "convolutional": (convolutional, lambda: torch.randn(4, 3, 12, 12), (4,), 5, by_momentum),
    "language": (Language, lambda: torch.randint(0, 50, (2, 11)), (2, 11), 50, by_moments),
}


@pytest.mark.parametrize("name", STEPPED)
def test_twenty_steps_are_those_of_torch(name):
    make, inputs, shape, classes, optimizer = STEPPED[name]
    one = make().train()
    other, given = copy.deepcopy(one), inputs()
    targets, losses = torch.randint(0, classes, shape), []
    for module, run in ((one, compiled(one)), (other, other)):
        update, found = optimizer(module.parameters()), []
        for _ in range(20):
            update.zero_grad()
            scores = run(given).flatten(0, -2)
            loss = nn.functional.cross_entropy(scores, targets.flatten())
            loss.backward()
            update.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0] == pytest.approx(losses[1], rel=2e-3)
    assert losses[0][-1] < losses[0][0]
    for mine, theirs in zip(one.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-2, atol=1e-3)


class WithConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.factors = nn.Linear(4, 4), torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x):
        return self.line(x) * self.factors + torch.tensor([1.0, 2.0, 3.0, 4.0])


def by_running_statistics():
    module = convolutional()
    module(torch.randn(4, 3, 12, 12))
    return module.eval()


LOWERED = {
    "maximum pool": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)), (2, 3, 9, 9)),
    "padded maximum pool": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(3, 2, 1, ceil_mode=True)),
        (2, 3, 9, 9),
    ),
    "statistics that were kept": (by_running_statistics, (2, 3, 12, 12)),
    "constants of the code": (WithConstants, (3, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0), (5, 2, 16)),
}


@pytest.mark.parametrize("name", LOWERED)
def test_no_graph_is_run_by_torch_where_a_module_has(name):
    make, shape = LOWERED[name]
    module = make()
    assert_gradients(module, compiled(module), torch.randn(shape))


def saved_bytes(module, given):
    """Return the bytes that autograd keeps of a run besides parameters, buffers and inputs."""
    known = {each.untyped_storage().data_ptr() for each in (*module.parameters(), given)}
    known |= {each.untyped_storage().data_ptr() for each in module.buffers()}
    found = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = module(given)
    del result
    return sum(size for pointer, size in found.items() if pointer not in known)


NEEDS_AVX512 = pytest.mark.skipif(not HAS_AVX512, reason="NumPy's products are not fused")


@pytest.mark.parametrize("name", ["resnet", pytest.param("language", marks=NEEDS_AVX512)])
def test_what_lies_between_both_paths_is_less_than_autograd_saves(name, monkeypatch):
    steps = []
    make = torch_compile.SplitStep
    monkeypatch.setattr(
        torch_compile, "SplitStep", lambda *given: steps.append(make(*given)) or steps[-1]
    )
    module = resnet().train() if name == "resnet" else Language().train()
    given = torch.randn(4, 3, 64, 64) if name == "resnet" else torch.randint(0, 50, (4, 48))
    result = compiled(module)(given)
    (step,) = steps
    assert 0 < step.kept_bytes < saved_bytes(module, given)
    assert STEPS.arenas.used_bytes >= step.arena_bytes
    result.sum().backward()
    assert STEPS.arenas.used_bytes == 0


def test_autograd_itself_keeps_a_few_bytes():
    module, given = perceptron(), torch.randn(500, 12)
    run = compiled(module)
    run(given)
    assert saved_bytes(run, given) < 200


def test_a_run_without_gradients_holds_nothing_for_a_backward_path():
    run, given = compiled(perceptron()), torch.randn(5, 12)
    with torch.no_grad():
        run(given)
    assert not STEPS.begun
    assert STEPS.arenas.used_bytes == 0


def test_what_is_never_differentiated_is_given_back_at_the_next_run():
    run, given = compiled(perceptron()), torch.randn(5, 12)
    for _ in range(3):
        run(given)
        assert len(STEPS.begun) == 1
    with torch.no_grad():
        run(given)
    assert not STEPS.begun
    assert STEPS.arenas.used_bytes == 0


def test_a_graph_that_is_retained_goes_back_twice_with_equal_bits():
    module, given = perceptron(), torch.randn(5, 12)
    loss = compiled(module)(given).sin().sum()
    first = torch.autograd.grad(loss, module.parameters(), retain_graph=True)
    again = torch.autograd.grad(loss, module.parameters())
    assert all(map(torch.equal, first, again))
    assert STEPS.arenas.used_bytes == 0
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, module.parameters())


def test_two_runs_may_be_open_at_once():
    module, given = perceptron(), torch.randn(5, 12)
    run = compiled(module)
    found = gradients(module, lambda x: run(x) + run(2 * x), given)
    wanted = gradients(module, lambda x: module(x) + module(2 * x), given)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_checkpoint_of_torch_around_it_runs_it_again():
    module, given = perceptron(), torch.randn(5, 12)
    run, checkpoint = compiled(module), torch.utils.checkpoint.checkpoint
    assert_gradients(module, lambda x: checkpoint(run, x, use_reentrant=False), given)
    assert STEPS.arenas.used_bytes == 0


def test_a_weight_that_was_changed_before_the_backward_path_is_reported():
    module = perceptron()
    loss = compiled(module)(torch.randn(5, 12)).sum()
    with torch.no_grad():
        module[2].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_hook_that_copies_saved_values_is_reported():
    copied = torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda tensor: tensor)
    run = compiled(perceptron())
    run(torch.randn(5, 12))
    with copied:
        loss = run(torch.randn(5, 12)).sum()
    with torch.no_grad():
        run(torch.randn(5, 12))
    with pytest.raises(InputError, match="a hook of saved tensors has copied"):
        loss.backward()


@pytest.mark.parametrize("dynamic", [None, True])
def test_each_length_has_a_graph_of_its_own(dynamic):
    module = perceptron()
    run = torch.compile(module, backend=compile_graph, dynamic=dynamic)
    for length in (5, 6, 7, 5, 6):
        assert_gradients(module, run, torch.randn(length, 12))
        with torch.no_grad():
            given = torch.randn(length, 12)
            torch.testing.assert_close(run(given), module(given), rtol=1e-4, atol=1e-5)


def test_numbers_that_change_have_one_too():
    line = nn.Linear(12, 12)
    run = compiled(Function(lambda x, columns: line(x).reshape(-1, columns) * x.shape[0]))
    for rows, columns in ((6, 2), (6, 3), (4, 4), (4, 6)):
        given = torch.randn(rows, 12)
        wanted = line(given).reshape(-1, columns) * rows
        torch.testing.assert_close(run(given, columns), wanted, rtol=1e-4, atol=1e-4)


def test_the_backward_path_drops_what_the_forward_path_has():
    module, given = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)), torch.randn(32, 64)
    run = compiled(module)
    torch.manual_seed(3)
    result = run(given)
    torch.manual_seed(3)
    assert torch.equal(result, run(given))
    result.sum().backward()
    wanted = 2 * (result != 0).float().T @ given
    torch.testing.assert_close(module[0].weight.grad, wanted, rtol=1e-4, atol=1e-4)


def test_more_that_is_done_again_gives_equal_bits():
    module, given = convolutional(), torch.randn(4, 3, 12, 12)
    found = []
    for share in (0.0, 0.5):
        torch._dynamo.reset()
        found.append(gradients(module, compiled(module, recompute=share), given))
    assert all(map(torch.equal, *found))


def test_a_graph_that_torch_releases_is_closed_at_the_next_run():
    module, given = perceptron(), torch.randn(5, 12)
    for _ in range(2):
        gradients(module, compiled(module), given)
        with torch.no_grad():
            compiled(module)(given)
        torch._dynamo.reset()
        gc.collect()
        STEPS.end_forgotten()
        assert not STEPS.graphs
        assert not any(len(room.arenas._arenas) for room in STEPS.arenas.pool._free)


def test_an_unknown_option_is_refused():
    with pytest.raises(
        Exception, match="Unknown option `recomputed`; the only option is `recompute`"
    ):
        compiled(perceptron(), recomputed=1)(torch.randn(5, 12))


def test_both_paths_run_apart_where_one_cannot_be_translated():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveMaxPool2d(2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert_gradients(module, compiled(module), torch.randn(2, 3, 9, 9))
    said = [str(each.message) for each in told if each.category is RuntimeWarning]
    assert [text.split(":")[0] for text in said] == [
        "The forward and the backward pass run as two programs",
        "Torch runs a graph instead of Tightship",
        "Torch runs a graph instead of Tightship",
    ]
    assert all("aten.adaptive_max_pool2d" in text for text in said)

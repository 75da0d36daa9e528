"""Control flow of torch, in inference and in training."""

import numpy as np
import pytest

from tests.frontend.torch.case import OF_TORCH, torch
from tightship import Sgd, load, train
from tightship.frontend.torch import training_graph
from tightship.training.train import train_joint

pytestmark = OF_TORCH


class Chosen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = torch.cond(
            x.sum() > 0, lambda x: torch.tanh(self.linear(x)), lambda x: x * 2, (x * 1.5,)
        )
        return y + 1


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        from torch._higher_order_ops.scan import scan

        def iteration(state, row):
            state = torch.tanh(self.linear(state) + row)
            return state, state * 2

        last, rows = scan(iteration, torch.zeros(4), x)
        return rows.sum(0) + last


class Grown(torch.nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda y: y.sum() < 90, lambda y: (y * 1.5 + 1,), (x.abs(),))[0]


class Mapped(torch.nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.map import map as each

        return each(lambda row, other: torch.sin(row) * other, x, x[0] + 1)


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("module", "shape"), [(Chosen, (2, 4)), (Recurrent, (90, 4)), (Grown, (2, 4)), (Mapped, (3, 4))]
)
def test_control_flow_gives_what_torch_gives(module, shape, sign):
    made, x = module().eval(), sign * numbers(*shape).abs()
    with torch.no_grad(), load(torch.export.export(made, (x,))) as model:
        np.testing.assert_allclose(model(x.numpy()), made(x), rtol=1e-4, atol=1e-5)


def by_torch(module, xs, goal, rate):
    optimizer, losses = torch.optim.SGD(module.parameters(), rate), []
    for x in xs:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(module(x), goal)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("count", [3, 900])
def test_a_scan_is_trained_as_torch_trains_it(count):
    module, goal = Recurrent(), numbers(4)
    x = 0.5 * numbers(count, 4)
    program = torch.export.export(module, (x,))
    weights = ["linear.weight", "linear.bias"]
    with train(program, "squared_error", Sgd(1e-5), weights=weights) as trainer:
        found = [trainer.step({"x": x.numpy(), "labels": goal.numpy()}) for _ in range(4)]

    def steps(x):
        state, rows = torch.zeros(4), []
        for row in x:
            state = torch.tanh(module.linear(state) + row)
            rows.append(state * 2)
        return torch.stack(rows).sum(0) + state

    module.forward = steps
    np.testing.assert_allclose(found, by_torch(module, [x] * 4, goal, 1e-5), rtol=1e-3)


@pytest.mark.parametrize("own", [True, False])
def test_a_choice_is_trained_as_torch_trains_it(own):
    module, goal = Chosen(), numbers(2, 4)
    xs = [numbers(2, 4).abs() * sign for sign in (1, -1, 1, 1)]
    if own:
        trainer = train(torch.export.export(module, (xs[0],)), "squared_error", Sgd(0.1))
    else:
        step = training_graph(module, [xs[0]], torch.nn.functional.mse_loss, [goal])
        trainer = train_joint(step, Sgd(0.1))
    with trainer:
        names = ("x", "labels") if own else trainer.input_names
        found = [trainer.step(dict(zip(names, (x.numpy(), goal.numpy()), strict=True))) for x in xs]
    np.testing.assert_allclose(found, by_torch(module, xs, goal, 0.1), rtol=1e-4)


def test_lengths_may_be_open_around_a_choice():
    module, batch = Chosen().eval(), torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(module, (numbers(3, 4),), dynamic_shapes=({0: batch},))
    with torch.no_grad(), load(program, shapes={"x": (5, 4)}) as model:
        for count in (5, 9, 5):
            x = numbers(count, 4)
            np.testing.assert_allclose(model(x.numpy()), module(x), rtol=1e-4, atol=1e-5)

"""Operators of torch against its eager results, a group of each part of the table."""

import pytest

from tests.frontend.torch.case import OF_TORCH, Function, check, exported, torch
from tightship.errors import GraphError
from tightship.frontend.torch import read

F = torch.nn.functional
pytestmark = OF_TORCH
MASK = torch.ones(5, 5).tril()


def image():
    return torch.randn(2, 6, 8, 8)


def matrix():
    return torch.randn(4, 6)


def whole():
    return torch.randint(-9, 9, (3, 5))


def heads():
    return torch.randn(2, 4, 5, 8)


PROGRAMS = {
    "activations": (
        image,
        lambda x: (F.silu(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.relu6(x),
                   F.leaky_relu(x), F.elu(x), F.selu(x), F.celu(x, 2.0), F.mish(x), F.glu(x),
                   F.gelu(x), F.gelu(x, approximate="tanh"), F.logsigmoid(x), F.softsign(x),
                   F.prelu(x, torch.full((6,), 0.3)), F.softplus(40 * x), F.softplus(x, 2.0)),
    ),
    "arithmetic": (
        matrix,
        lambda x: (x + 1, 1 - x, x * 2, x / 3, x // 0.5, x % 0.3, x**2, x**3, abs(x) ** 0.5, 2**x,
                   torch.rsqrt(abs(x)), torch.log1p(abs(x)), torch.expm1(x), x.clamp(-1, 1),
                   x.clamp(min=0), torch.add(x, x, alpha=2), torch.maximum(x, -x), x.trunc(),
                   torch.div(x, 0.7, rounding_mode="trunc"), torch.addcmul(x, x, x), x.round()),
    ),
    "integers": (
        whole,
        lambda i: (i // 2, i // -2, i % 3, i + 1, i / 2, i.float(), i * i, i & 1, i | 2, ~i,
                   i.to(torch.int32), torch.div(i, 2, rounding_mode="trunc"), i > 1.5, i != 2),
    ),
    "conditions": (
        matrix,
        lambda x: (x > 0, x == abs(x), (x != 0) & (x < 1), (x > 0) | (x < -1), ~(x > 0),
                   torch.where(x > 0, x, 2), x.masked_fill(x > 0, -1.0), torch.logical_and(x, x)),
    ),
    "reductions": (
        matrix,
        lambda x: (x.sum(), x.sum(1), x.mean(0, keepdim=True), x.amax(1), *x.max(1), *x.min(0),
                   x.argmax(), x.argmax(1), x.var(1), x.std(0, correction=0), x.prod(1),
                   x.cumsum(1), (x > 0).any(), (x > 0).all(1), x.norm(), F.normalize(x),
                   x.logsumexp(1), x.softmax(1), x.log_softmax(0), *x.topk(2),
                   *x.sort(1, descending=True)),
    ),
    "views": (
        image,
        lambda x: (x.view(2, -1), x.permute(0, 2, 3, 1), x[0], x[:, 1], x[:, ::2], x[:, -1:],
                   x[..., None], x.flatten(1), x.expand(3, 2, 6, 8, 8), x.repeat(1, 2, 1, 1),
                   x.flip(1, 2), x.roll(1, 2), x.narrow(1, 1, 2), x.movedim(1, -1), x[:1].squeeze(),
                   *x.chunk(3, 1), *x.split([1, 5], 1), *x.unbind(0)),
    ),
    "joined and padded": (
        image,
        lambda x: (torch.cat([x, x], 1), torch.cat([x, torch.zeros(0)]), torch.stack([x, x]),
                   F.pad(x, (1, 2, 0, 1)), F.pad(x, (1, -1), value=3.0),
                   F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2)),
    ),
    "indices": (
        matrix,
        lambda x: (x[torch.tensor([[0, 3], [2, 2]])], x[:, torch.tensor([5, 0])],
                   x[torch.tensor([1, 2]), torch.tensor([4, 0])],
                   x.gather(0, torch.tensor([[3, 0, 1]])), x.index_select(1, torch.tensor([2, 2])),
                   x.scatter(0, torch.tensor([[3, 0, 1]]), 1.0),
                   x.scatter_add(0, torch.tensor([[3, 0, 1]]), x),
                   x.index_put((torch.tensor([2, 0]),), torch.zeros(2, 6)),
                   x.index_put((torch.tensor([2, 2]),), x[:2], accumulate=True),
                   x.index_put((x > 0,), torch.tensor(-1.0)),
                   x.index_put((x[:, 0] > 0,), x[1])),
    ),
    "made": (
        matrix,
        lambda x: (x + torch.arange(6), torch.zeros_like(x), torch.full_like(x, 2.0),
                   torch.tril(x), torch.triu(x, 1), torch.linspace(0, 1, 6) * x, x.new_ones(3)),
    ),
    "products": (
        matrix,
        lambda x: (x @ x.T, torch.addmm(x[:, :4], x, x.T, beta=0.5), x @ x[0],
                   torch.outer(x[0], x[0]), torch.einsum("ij,kj->ik", x, x), F.linear(x[None], x),
                   F.linear(x, x, x[:, 0]),
                   torch.baddbmm(x[None, :, :4], x[None], x.T[None], alpha=2.0, beta=0.5)),
    ),
    "attention": (
        heads,
        lambda q: (F.scaled_dot_product_attention(q, q, q, scale=0.3),
                   F.scaled_dot_product_attention(q[0], q[0], q[0]),
                   F.scaled_dot_product_attention(q, q, q, attn_mask=MASK.bool()),
                   F.scaled_dot_product_attention(q, q, q, attn_mask=MASK),
                   F.scaled_dot_product_attention(q, q[:, :2], q[:, :2], enable_gqa=True),
                   F.scaled_dot_product_attention(q[:, :, :3], q, q, is_causal=True),
                   F.scaled_dot_product_attention(q[:, None], q[:, None], q[:, None])),
    ),
    "convolutions": (
        image,
        lambda x: (F.conv2d(x, torch.ones(3, 6, 3, 3), padding="same"),
                   F.conv2d(x, torch.ones(6, 1, 3, 3), torch.ones(6), stride=2, groups=6),
                   F.conv2d(x, torch.ones(2, 6, 2, 2), dilation=(1, 2), padding=(1, 0)),
                   F.conv1d(x[0], torch.ones(4, 8, 3)), F.conv2d(x[0], torch.ones(3, 6, 1, 1)),
                   F.conv_transpose2d(x, torch.ones(6, 3, 3, 3), stride=2, output_padding=1)),
    ),
    "pools": (
        image,
        lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1),
                   F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.max_pool2d(x[0], 2),
                   F.max_pool1d(x[0], 2), F.avg_pool1d(x[0], 2), F.adaptive_avg_pool2d(x, (4, 2)),
                   F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool1d(x[0], 2)),
    ),
    "resized": (
        image,
        lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(12, 5)),
                   F.interpolate(x, size=(12, 12), mode="bilinear"),
                   F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True)),
    ),
    "normalizations": (
        image,
        lambda x: (F.group_norm(x, 3, torch.arange(6.0), torch.ones(6)), F.instance_norm(x),
                   F.layer_norm(x, (8, 8)), F.rms_norm(x, (8,)),
                   F.batch_norm(x, torch.zeros(6), torch.ones(6)),
                   F.instance_norm(x, torch.zeros(6), torch.ones(6), use_input_stats=False)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_give_what_torch_gives(name):
    inputs, function = PROGRAMS[name]
    check(Function(function), inputs(), tolerance=2e-5)


REFUSED = {
    "an option": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), "divisor_override"),
    "uneven windows": (lambda x: F.adaptive_avg_pool2d(x, 3), "size that divides"),
    "places of maxima": (lambda x: F.max_pool2d(x, 2, return_indices=True), "is result 1"),
    "dropout": (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1), "dropout_p"),
    "a norm": (lambda x: torch.linalg.vector_norm(x, 3, dim=1), "norm of the order 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_expressed_is_refused(name):
    function, words = REFUSED[name]
    with pytest.raises(GraphError, match=words):
        read(exported(Function(function), image()))


def test_queries_that_see_no_key_give_zeros_as_in_torch():
    mask = torch.zeros(5, 5, dtype=torch.bool)
    mask[1:] = True
    check(Function(lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=mask)), heads())

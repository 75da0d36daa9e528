"""Modules of torch as large as those that people plan: ResNet-50, GPT-2, a Llama-like decoder."""

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """Three convolutions around a narrow middle, added to their input."""

    def __init__(self, inputs: int, middle: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * middle
        self.body = nn.Sequential(
            nn.Conv2d(inputs, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(),
            nn.Conv2d(middle, middle, 3, stride, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(),
            nn.Conv2d(middle, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.beside = nn.Sequential()
        if stride > 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.beside = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a batch of images with 4 channels for each of the middle."""
        return torch.relu(self.body(x) + self.beside(x))


class ResNet50(nn.Module):
    """ResNet-50 for 1,000 classes."""

    def __init__(self) -> None:
        super().__init__()
        stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for middle, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                blocks.append(Bottleneck(inputs, middle, stride if index == 0 else 1))
                inputs = 4 * middle
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return scores of a batch of images, (batch, 1000)."""
        return self.head(self.blocks(self.stem(image)).mean((2, 3)))


class Gpt2Layer(nn.Module):
    """Attention and two products, each behind a normalization."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a batch of texts of the same shape, (batch, length, width)."""
        x = x + self.out(attention(*self.qkv(self.norm1(x)).chunk(3, -1), self.heads))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 with 124 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers = nn.Sequential(*[Gpt2Layer(768, 12) for _ in range(12)])
        self.norm, self.scores = nn.LayerNorm(768), nn.Linear(768, 50257, bias=False)
        self.scores.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores of a batch of texts, (batch, length, 50257)."""
        places = self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.scores(self.norm(self.layers(self.tokens(ids) + places)))


class RootMean(nn.Module):
    """Normalization by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaLayer(nn.Module):
    """Attention with rotated positions, and a gated product."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RootMean(width), RootMean(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Return a batch of texts of the same shape, (batch, length, width)."""
        y = self.norm1(x)
        x = x + self.o(attention(self.q(y), self.k(y), self.v(y), self.heads, turn))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A decoder like Llama 2 with 6.7 billion parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(32000, 4096)
        self.layers = nn.ModuleList([LlamaLayer(4096, 32, 11008) for _ in range(32)])
        self.norm, self.scores = RootMean(4096), nn.Linear(4096, 32000, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores of a batch of texts, (batch, length, 32000)."""
        rates = 10000 ** (-torch.arange(0, 128, 2, device=ids.device) / 128)
        angles = torch.outer(torch.arange(ids.shape[1], device=ids.device), rates).repeat(1, 2)
        x, turn = self.tokens(ids), (angles.cos(), angles.sin())
        for layer in self.layers:
            x = layer(x, turn)
        return self.scores(self.norm(x))


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    heads: int,
    turn: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Return causal attention of tensors of (batch, length, width), in as many heads."""
    batch, length, width = q.shape
    q, k, v = (each.view(batch, length, heads, -1).transpose(1, 2) for each in (q, k, v))
    if turn is not None:
        q, k = rotated(q, *turn), rotated(k, *turn)
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(batch, length, width)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate halves of the last axis by angles of each position."""
    one, other = x.chunk(2, -1)
    return x * cos + torch.cat((-other, one), -1) * sin


NETS = {
    "ResNet-50": (ResNet50, lambda: torch.zeros(1, 3, 224, 224)),
    "GPT-2": (Gpt2, lambda: torch.zeros(1, 128, dtype=torch.int64)),
    "Llama-like 7B": (Llama, lambda: torch.zeros(1, 2048, dtype=torch.int64)),
}

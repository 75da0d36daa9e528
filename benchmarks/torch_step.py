"""A training step of torch eager in a process of its own, which waits for its turn.

    PYTHON torch_step.py NET BATCH LENGTH THREADS

Networks are ResNet-50 as torchvision has it and GPT-2 small with a matrix of scores of its own,
written with torch alone, so that any interpreter with torch runs this file. A line on the standard
output says what the process has resident before the first step; each line `GO n` on the standard
input is answered with the seconds of `n` steps, by the clock and of processor time, and with the
high-water mark.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

WORDS, WIDTH, HEADS, LAYERS = 50257, 768, 12, 12


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, before: int, inner: int, stride: int, *, is_first: bool) -> None:
        super().__init__()
        after = 4 * inner
        self.one = nn.Conv2d(before, inner, 1, bias=False)
        self.two = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.three = nn.Conv2d(inner, after, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in (inner, inner, after))
        self.relu = nn.ReLU(inplace=True)
        self.down = (
            nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            if is_first
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        y = self.relu(self.norms[0](self.one(x)))
        y = self.relu(self.norms[1](self.two(y)))
        y = self.norms[2](self.three(y))
        y += self.down(x)
        return self.relu(y)


def resnet50() -> nn.Module:
    """The network, with 1,000 classes."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    before = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for index in range(count):
            stride = 2 if stage and not index else 1
            layers.append(Bottleneck(before, 64 << stage, stride, is_first=not index))
            before = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.apart, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's result."""
        batch, steps, _ = x.shape
        parts = self.apart(self.before(x)).split(WIDTH, 2)
        heads = (part.view(batch, steps, HEADS, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.joined(mixed.transpose(1, 2).reshape(batch, steps, WIDTH))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 small: scores of every word at every place."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(1024, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """A row of scores for each place of each text."""
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        return self.scores(self.norm(self.blocks(x))).view(-1, WORDS)


def status(field: str) -> int:
    """A figure of the process, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def main(net: str, batch: int, length: int, threads: int) -> None:
    """Obey lines until there are no more."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    imported = status("VmRSS")
    model: nn.Module
    if net == "resnet50":
        model, x = resnet50(), torch.randn(batch, 3, length, length)
        labels = torch.randint(0, 1000, (batch,))
    else:
        model, x = Gpt2(), torch.randint(0, WORDS, (batch, length))
        labels = torch.randint(0, WORDS, (batch * length,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    said = {"imported": imported, "before": status("VmRSS"), "version": torch.__version__}
    print(json.dumps(said), flush=True)
    for line in sys.stdin:
        walls, cpus = [], []
        for _ in range(int(line.split()[1])):
            started, used = time.perf_counter(), time.process_time()
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), labels).backward()
            optimizer.step()
            walls.append(time.perf_counter() - started)
            cpus.append(time.process_time() - used)
        print(json.dumps({"walls": walls, "cpus": cpus, "peak": status("VmHWM")}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))

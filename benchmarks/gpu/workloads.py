"""Three training workloads and one of inference: each is a function that does one iteration."""

import random
from collections.abc import Callable

import torch
from torch import nn

DEVICE = "cuda"
VOCABULARY = 32_000
Iteration = Callable[[], None]
Batch = tuple[torch.Tensor, torch.Tensor]


class Decoder(nn.Module):
    """A causal transformer."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, batch_first=True, norm_first=True, dropout=0.0
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of each next token."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], tokens.device)
        return self.head(self.layers(self.embed(tokens), mask, is_causal=True))


def _convolution(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


def _training(model: nn.Module, batch: Callable[[], Batch]) -> Iteration:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def iterate() -> None:
        inputs, targets = batch()
        with torch.autocast(DEVICE, torch.bfloat16):
            outputs = model(inputs)
            loss = nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return iterate


def _tokens(count: int, length: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, (count, length), device=DEVICE)


def transformer() -> Iteration:
    """Batches of one shape."""
    model = Decoder(1024, 16).to(DEVICE)
    return _training(model, lambda: (_tokens(16, 1024), _tokens(16, 1024)))


def transformer_of_lengths() -> Iteration:
    """Another length in each batch: blocks of sizes that were never seen."""
    model, choice = Decoder(1024, 16).to(DEVICE), random.Random(0)

    def batch() -> Batch:
        length = choice.randrange(64, 1537)
        return _tokens(16, length), _tokens(16, length)

    return _training(model, batch)


def convolutional() -> Iteration:
    """Images of one size."""
    widths = [(3, 64, 2), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 512, 2), (512, 512, 1)]
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    model = nn.Sequential(*[_convolution(*width) for width in widths], *head).to(DEVICE)

    def batch() -> Batch:
        images = torch.randn(256, 3, 224, 224, device=DEVICE)
        return images, torch.randint(1000, (256,), device=DEVICE)

    return _training(model, batch)


def serving() -> Iteration:
    """Requests that come, grow their keys and values by a token at a time, and go."""
    choice = random.Random(0)
    heads, width, layers = 16, 128, 24
    requests: list[tuple[int, list[torch.Tensor]]] = []

    def of_length(length: int) -> torch.Tensor:
        return torch.zeros(2, heads, length, width, dtype=torch.bfloat16, device=DEVICE)

    @torch.inference_mode()
    def iterate() -> None:
        while len(requests) < 48:
            length = choice.randrange(16, 2048)
            caches = [of_length(length) for _ in range(layers)]
            requests.append((length + choice.randrange(16, 256), caches))
        for number, (last, caches) in enumerate(requests):
            grown = [torch.cat([cache, of_length(1)], dim=2) for cache in caches]
            for keys, values in grown:
                nn.functional.scaled_dot_product_attention(keys[:, -1:], keys, values)
            requests[number] = (last, grown)
        requests[:] = [entry for entry in requests if entry[1][0].shape[2] < entry[0]]

    return iterate


WORKLOADS: dict[str, Callable[[], Iteration]] = {
    "transformer": transformer,
    "transformer_of_lengths": transformer_of_lengths,
    "convolutional": convolutional,
    "serving": serving,
}

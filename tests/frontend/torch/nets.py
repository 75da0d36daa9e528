"""Modules of torch of the kinds that people plan, with weights as after training."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
nn = torch.nn


class Residual(nn.Module):
    """Two convolutions with normalizations, added to their input."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


class Classifier(nn.Module):
    """A residual network: a stem, blocks, a mean and a product."""

    def __init__(self, channels=16, blocks=2, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.blocks = nn.Sequential(*[Residual(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels, classes)

    def forward(self, image):
        x = self.blocks(torch.relu(self.norm(self.stem(image))))
        return self.head(x.mean((2, 3)))


class Layer(nn.Module):
    """Attention and two products with normalizations before, as in GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """Embeddings, layers, and scores by the tied embedding."""

    def __init__(self, vocabulary=96, width=32, heads=4, layers=2, length=16):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary, bias=False)
        self.scores.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.scores(self.norm(x))


class Recurrent(nn.Module):
    """A recurrent layer and a product."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(12, 24, batch_first=True)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


CASES = {
    "classifier": (Classifier, lambda: (torch.randn(2, 3, 16, 16),)),
    "decoder": (Decoder, lambda: (torch.randint(0, 96, (2, 16)),)),
    "recurrent": (Recurrent, lambda: (torch.randn(2, 5, 12),)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True),
        lambda: (torch.randn(2, 7, 32),),
    ),
}


def trained(make):
    """A module whose parameters and buffers are those of no initialization."""
    torch.manual_seed(3)
    module = make()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.uniform_(0.3, 0.7).mul_(0.5)
    return module

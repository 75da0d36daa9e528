"""Optional features of a driver."""

from tightship.driver.memory.dma_buf import KERNEL, has_allocator
from tightship.driver.types.settings import Settings

_DMA_BUF = {"dma_buf"} if has_allocator(KERNEL) else set()
FEATURES = Settings().features | {"hardware_buffer", "isolated", *_DMA_BUF}
"""Names of what clients can do without."""

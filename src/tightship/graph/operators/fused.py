"""Rows of operators that passes and frontends make: the domain `tightship`."""

from functools import partial

from tightship.graph.operators.row import Category, NoGradient, Operator

NOT_REAL_WEIGHTS = NoGradient("encoded rows are not real numbers")
_row = partial(Operator, domain="tightship")

ROWS = (
    _row("AppendRows", "3 axis", category=Category.REPLACING, native="sequence.append_rows"),
    _row("Attention", native="attention.attention"),
    _row("ChannelShuffle", onednn="movement.channel_shuffle"),
    _row("DepthwiseConv", native="depthwise.depthwise"),
    _row("Dequantize"),
    _row("DequantizeBlocks", "3 bits block_size depth mode rows",
        numpy="block_weights.dequantize_blocks",
        gradient="block_weights.dequantize_blocks"),
    _row("DequantizeRows", "1 depth rows type", numpy="encoded_rows.dequantize_rows",
        gradient=NOT_REAL_WEIGHTS),
    _row("GRU", native="recurrent.recurrent"),
    _row("GRUGrad", native="recurrent_gradient.cell:linear_gru"),
    _row("LSTM", native="recurrent.recurrent"),
    _row("LSTMGrad", native="recurrent_gradient.cell:lstm"),
    _row("QuantizedRows", native="quantized_rows.quantized_rows"),
    _row("RNN", native="recurrent.recurrent"),
    _row("RNNGrad", native="recurrent_gradient.cell:plain"),
    _row("Rotary", native="rotary.rotary"),
    _row("ScaledConv", onednn="convolution.convolution"),
    _row("WidenRows", "1"),
)  # fmt: skip

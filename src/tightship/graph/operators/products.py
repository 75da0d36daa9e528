"""Rows of products of matrices, attention and recurrent layers."""

from tightship.graph.operators.row import ALLOCATES, UNWRITTEN, Category, Half, Operator

ROWS = (
    Operator("Attention",
        "7 is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
        "right_window_size scale softcap softmax_precision", half=Half.FLOAT32, is_product=True,
        shape="stacks.attention", operands="sequences.attention",
        gradient="attention.attention_rule"),
    Operator("Einsum", "* equation", half=Half.FLOAT32, is_product=True, shape="stacks.einsum",
        operands="indexed.einsum", numpy="matmul.einsum", gradient="product.contraction"),
    Operator("GRU",
        "6 activation_alpha activation_beta activations clip direction @hidden_size layout "
        "linear_before_reset ~output_sequence", half=Half.FLOAT32, is_product=True, trims=True,
        shape="stacks.recurrent", operands="sequences.recurrent:GRU", numpy="recurrent.gru",
        gradient="recurrent.recurrent_rule"),
    Operator("Gemm", "3 alpha beta @broadcast transA transB", half=Half.FLOAT32, is_product=True,
        shape="stacks.gemm", operands="parameters.gemm", numpy="matmul.gemm", onednn="matmul.gemm",
        quantized="quantized_product.quantized_gemm",
        objects="sized.reduction.gemm", gradient="product.gemm", sized="sized.native.gemm"),
    Operator("LSTM", "8 activation_alpha activation_beta activations clip direction @hidden_size "
        "input_forget layout ~output_sequence", half=Half.FLOAT32, is_product=True, trims=True,
        shape="stacks.recurrent", operands="sequences.recurrent:LSTM", numpy="recurrent.lstm",
        gradient="recurrent.recurrent_rule"),
    Operator("LinearAttention", "6 chunk_size kv_num_heads q_num_heads scale update_rule",
        half=ALLOCATES, gradient=UNWRITTEN),
    Operator("MatMul", "2", half=Half.FLOAT32, is_product=True, shape="stacks.matmul",
        numpy="matmul.mat_mul", onednn="matmul.matmul",
        quantized="quantized_product.quantized_matmul",
        objects="sized.reduction.matrix_product", gradient="product.matmul",
        sized="sized.native.plain"),
    Operator("RNN",
        "6 activation_alpha activation_beta activations clip direction @hidden_size layout "
        "~output_sequence", half=Half.FLOAT32, is_product=True, trims=True,
        shape="stacks.recurrent", operands="sequences.recurrent:RNN", numpy="recurrent.rnn",
        gradient="recurrent.recurrent_rule"),
    Operator("RotaryEmbedding", "4 interleaved num_heads rotary_embedding_dim",
        category=Category.NORMALIZING, half=Half.FLOAT32, shape="rules.same",
        operands="sequences.rotary", native="rotary.rotary_embedding", gradient=UNWRITTEN),
)  # fmt: skip

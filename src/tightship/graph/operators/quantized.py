"""Rows of operators on quantized tensors."""

from tightship.graph.operators.row import NOT_REAL, QUANTIZED, UNWRITTEN, Operator

ROWS = (
    Operator("ConvInteger", "4 auto_pad dilations group @kernel_shape pads strides",
        shape="windows.convolution", operands="quantized.conv_integer",
        quantized="integer_convolution.convolution_integer", gradient=NOT_REAL),
    Operator("DequantizeLinear", "3 axis block_size @output_dtype", half=QUANTIZED,
        shape="rules.same", operands="quantized.linear", numpy="quantize.dequantize",
        native="quantize.dequantize", gradient=UNWRITTEN),
    Operator("DynamicQuantizeLinear", "1", shape="rules.dynamic_quantize",
        numpy="quantize.dynamic_quantize", native="quantize.dynamic_quantize", gradient=UNWRITTEN),
    Operator("MatMulInteger", "4", shape="stacks.matmul", operands="quantized.matmul_integer",
        numpy="matmul.matmul_integer", quantized="integer_product.matmul_integer",
        gradient=NOT_REAL),
    Operator("QLinearConv", "9 auto_pad dilations group @kernel_shape pads strides",
        shape="windows.q_linear_conv", operands="quantized.qlinear_conv", gradient=NOT_REAL),
    Operator("QLinearMatMul", "8", half=QUANTIZED, shape="stacks.q_linear_mat_mul",
        operands="quantized.qlinear_matmul", numpy="matmul.qlinear_matmul", gradient=UNWRITTEN),
    Operator("QuantizeLinear", "3 axis block_size @output_dtype precision saturate", half=QUANTIZED,
        shape="rules.same", operands="quantized.linear", numpy="quantize.quantize_linear",
        native="quantize.quantize", gradient=UNWRITTEN),
)  # fmt: skip

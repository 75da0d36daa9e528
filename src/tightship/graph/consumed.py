"""Table of the inputs and attributes that are read of ONNX's operators; others are refused.

Tests check the table against onnx's schemas, and against what each kind of kernel reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

_TABLE = """
Abs 1 ~consumed_inputs
Acos 1
Acosh 1
Add 2 axis @broadcast ~consumed_inputs
AffineGrid 2 align_corners
And 2 axis @broadcast
ArgMax 1 axis @keepdims select_last_index
ArgMin 1 axis @keepdims select_last_index
Asin 1
Asinh 1
Atan 1
Atanh 1
Attention 7 is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode
    right_window_size scale softcap softmax_precision
AveragePool 1 auto_pad @ceil_mode count_include_pad dilations kernel_shape pads strides
BatchNormalization 5 ~consumed_inputs epsilon is_test=1 momentum spatial=1 training_mode
Bernoulli 1 dtype seed
BitCast 1 @to
BitShift 2 direction
BitwiseAnd 2
BitwiseNot 1
BitwiseOr 2
BitwiseXor 2
BlackmanWindow 1 output_datatype periodic
Cast 1 round_mode saturate @to
CastLike 2 round_mode saturate
CausalConvWithState 4 activation
Ceil 1 ~consumed_inputs
Celu 1 alpha
CenterCropPad 2 axes
Clip 3 ~consumed_inputs max min
Col2Im 3 dilations pads strides
Compress 2 axis
Concat * axis
ConcatFromSequence 1 axis new_axis
Constant 0 sparse_value value value_float value_floats value_int value_ints value_string
    value_strings
ConstantOfShape 1 value
Conv 3 auto_pad dilations group @kernel_shape pads strides
ConvInteger 4 auto_pad dilations group @kernel_shape pads strides
ConvTranspose 3 auto_pad dilations group @kernel_shape @output_padding output_shape pads strides
Cos 1
Cosh 1
CumProd 2 exclusive reverse
CumSum 2 exclusive reverse
DFT 3 axis inverse onesided
DeformConv 5 dilations group kernel_shape offset_group pads strides
DepthToSpace 1 blocksize mode
DequantizeLinear 3 axis block_size @output_dtype
Det 1
Div 2 axis @broadcast ~consumed_inputs
Dropout 3 ~consumed_inputs is_test=1 ratio seed
DynamicQuantizeLinear 1
Einsum * equation
Elu 1 alpha ~consumed_inputs
Equal 2 axis @broadcast
Erf 1
Exp 1 ~consumed_inputs
Expand 2
EyeLike 1 @dtype k
Flatten 1 axis
Floor 1 ~consumed_inputs
GRU 6 activation_alpha activation_beta activations clip direction @hidden_size layout
    linear_before_reset ~output_sequence
Gather 2 axis
GatherElements 2 axis
GatherND 2 batch_dims
Gelu 1 approximate
Gemm 3 alpha beta @broadcast transA transB
GlobalAveragePool 1
GlobalLpPool 1 p
GlobalMaxPool 1
Greater 2 axis @broadcast
GreaterOrEqual 2
GridSample 2 align_corners mode padding_mode
GroupNormalization 3 epsilon num_groups stash_type=1,10,16
HammingWindow 1 output_datatype periodic
HannWindow 1 output_datatype periodic
HardSigmoid 1 alpha beta ~consumed_inputs
HardSwish 1
Hardmax 1 axis
Identity 1
If 1 else_branch then_branch
ImageDecoder 1 pixel_format
InstanceNormalization 3 ~consumed_inputs epsilon
IsInf 1 detect_negative detect_positive
IsNaN 1
LRN 1 alpha beta bias size
LSTM 8 activation_alpha activation_beta activations clip direction @hidden_size input_forget
    layout ~output_sequence
LayerNormalization 3 axis epsilon stash_type=1,10,16
LeakyRelu 1 alpha ~consumed_inputs
Less 2 axis @broadcast
LessOrEqual 2
LinearAttention 6 chunk_size kv_num_heads q_num_heads scale update_rule
Log 1 ~consumed_inputs
LogSoftmax 1 axis
Loop * body
LpNormalization 1 axis p
LpPool 1 auto_pad @ceil_mode dilations kernel_shape p pads strides
MatMul 2
MatMulInteger 4
Max * ~consumed_inputs
MaxPool 1 auto_pad @ceil_mode dilations kernel_shape pads storage_order strides
MaxRoiPool 2 pooled_shape spatial_scale
MaxUnpool 3 kernel_shape pads strides
Mean * ~consumed_inputs
MeanVarianceNormalization 1 axes
MelWeightMatrix 5 output_datatype
Min * ~consumed_inputs
Mish 1
Mod 2 fmod
Mul 2 axis @broadcast ~consumed_inputs
Multinomial 1 dtype sample_size seed
Neg 1 ~consumed_inputs
NegativeLogLikelihoodLoss 3 ignore_index reduction
NonMaxSuppression 5 center_point_box
NonZero 1
Not 1
OneHot 3 axis
Optional 1 type
OptionalGetElement 1
OptionalHasElement 1
Or 2 axis @broadcast
PRelu 2 ~consumed_inputs
Pad 4 mode paddings pads value
Pow 2 axis @broadcast
QLinearConv 9 auto_pad dilations group @kernel_shape pads strides
QLinearMatMul 8
QuantizeLinear 3 axis block_size @output_dtype precision saturate
RMSNormalization 2 axis epsilon stash_type=1,10,16
RNN 6 activation_alpha activation_beta activations clip direction @hidden_size layout
    ~output_sequence
RandomNormal 0 dtype mean scale seed shape
RandomNormalLike 1 dtype mean scale seed
RandomUniform 0 dtype high low seed shape
RandomUniformLike 1 dtype high low seed
Range 3 stash_type=1
Reciprocal 1 ~consumed_inputs
ReduceL1 2 axes @keepdims noop_with_empty_axes
ReduceL2 2 axes @keepdims noop_with_empty_axes
ReduceLogSum 2 axes @keepdims noop_with_empty_axes
ReduceLogSumExp 2 axes @keepdims noop_with_empty_axes
ReduceMax 2 axes @keepdims noop_with_empty_axes
ReduceMean 2 axes @keepdims noop_with_empty_axes
ReduceMin 2 axes @keepdims noop_with_empty_axes
ReduceProd 2 axes @keepdims noop_with_empty_axes
ReduceSum 2 axes @keepdims noop_with_empty_axes
ReduceSumSquare 2 axes @keepdims noop_with_empty_axes
RegexFullMatch 1 pattern
Relu 1 ~consumed_inputs
Reshape 2 @allowzero ~consumed_inputs @shape
Resize 4 antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside
    extrapolation_value keep_aspect_ratio_policy mode nearest_mode
ReverseSequence 2 batch_axis time_axis
RoiAlign 3 coordinate_transformation_mode mode output_height output_width sampling_ratio
    spatial_scale
RotaryEmbedding 4 interleaved num_heads rotary_embedding_dim
Round 1
STFT 4 onesided
Scan * body directions num_scan_inputs scan_input_axes scan_input_directions
    scan_output_axes scan_output_directions
Scatter 3 axis
ScatterElements 3 axis reduction
ScatterND 3 reduction
Selu 1 alpha ~consumed_inputs gamma
SequenceAt 2
SequenceConstruct *
SequenceEmpty 0 dtype
SequenceErase 2
SequenceInsert 3
SequenceLength 1
SequenceMap * body
Shape 1 end start
Shrink 1 bias lambd
Sigmoid 1 ~consumed_inputs
Sign 1
Sin 1
Sinh 1
Size 1
Slice 5 axes ends starts
Softmax 1 axis
SoftmaxCrossEntropyLoss 3 ignore_index reduction
Softplus 1
Softsign 1
SpaceToDepth 1 blocksize mode
Split 2 axis @num_outputs @split
SplitToSequence 2 axis keepdims
Sqrt 1 ~consumed_inputs
Squeeze 2 axes
StringConcat 2
StringNormalizer 1 case_change_action is_case_sensitive locale stopwords
StringSplit 1 delimiter maxsplit
Sub 2 axis @broadcast ~consumed_inputs
Sum * ~consumed_inputs
SwiGLU 2 alpha
Swish 1 alpha
Tan 1
Tanh 1 ~consumed_inputs
TensorScatter 3 axis mode
TfIdfVectorizer 1 max_gram_length max_skip_count min_gram_length mode ngram_counts
    ngram_indexes pool_int64s pool_strings weights
ThresholdedRelu 1 alpha
Tile 3
TopK 2 axis @k largest ~sorted
Transpose 1 perm
Trilu 2 upper
Unique 1 axis sorted
Unsqueeze 2 axes
Upsample 2 height_scale mode scales width_scale
Where 3
Xor 2 axis @broadcast
"""
"""Number of inputs that a node of each operator may have (`*` for any), and its attributes.

`@name` follows from the shapes or types of operands too, `~name` changes no result, `name=1,2` is
supported for these values only."""

IDLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "consumed_inputs": "names inputs whose memory may be reused",
        "output_sequence": "says whether an output is asked for, which the node's outputs say",
        "sorted": "allows any order, so that the sorted one serves",
    }
)
"""Attributes that change no result, and why."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """Inputs and attributes that are read of an operator's nodes, in any version.

    Attributes:
        inputs: Most inputs that a node may have; None for any number.
        attributes: Names of attributes that kernels, passes or type inference read.
        typed: Names among these that follow from shapes and types, so that kernels need not read
            them.
        only: Values by name of attributes that need not be read if they have one of these.
        idle: Names of attributes that change no result.
    """

    inputs: int | None
    attributes: frozenset[str]
    typed: frozenset[str]
    only: Mapping[str, tuple[int, ...]]
    idle: frozenset[str]

    @staticmethod
    def of(words: Sequence[str]) -> "Consumed":
        """Parse the words of a row, from the number of inputs on."""
        count, *names = words
        only = [name.partition("=") for name in names if "=" in name]
        return Consumed(
            None if count == "*" else int(count),
            frozenset(name.lstrip("@") for name in names if "=" not in name and name[0] != "~"),
            frozenset(name[1:] for name in names if name[0] == "@"),
            {name: tuple(map(int, values.split(","))) for name, _, values in only},
            frozenset(name[1:] for name in names if name[0] == "~"),
        )

    def refusal(
        self, inputs: Sequence[str], values: Mapping[str, object], element: int = 0
    ) -> str | None:
        """Return what of a node is not supported, and what is; None if all is read.

        Args:
            inputs: Names of the node's inputs.
            values: Its attributes.
            element: Element type of its first input, by ONNX's number; a `stash_type` of this type
                need not be read.
        """
        for place, name in enumerate(inputs):
            if self.inputs is not None and place >= self.inputs and name:
                return f"`{name}` as input {place}; {self.inputs} inputs are supported"
        for name, value in values.items():
            if name == "stash_type" and value == element:
                continue
            if name in self.only and value not in self.only[name]:
                allowed = " or ".join(map(str, self.only[name]))
                return f"`{name}` = {value}; only {allowed} is supported"
            if name not in self.attributes and name not in self.only and name not in self.idle:
                return f"the attribute `{name}`, which is not supported"
        return None


@cache
def _lines() -> dict[str, str]:
    joined = _TABLE.strip().replace("\n    ", " ").splitlines()
    return {line.partition(" ")[0]: line for line in joined}


@cache
def consumed(operator: str) -> Consumed | None:
    """Return the row of an operator; None if only `onnx.reference` may know it.

    Rows are made on first use, because all of them take 0.3 MB.
    """
    line = _lines().get(operator)
    return None if line is None else Consumed.of(line.split()[1:])


def operators() -> Sequence[str]:
    """List the operators that have a row."""
    return tuple(_lines())

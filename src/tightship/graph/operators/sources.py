"""Rows of operators that make tensors of shapes, of attributes or at random."""

from tightship.graph.operators.row import (
    ALLOCATES,
    DRAWN,
    MAKES,
    NOT_REAL,
    OF_SHAPES,
    SETTINGS,
    STEPS,
    UNWRITTEN,
    Operator,
)

ROWS = (
    Operator("Bernoulli", "1 dtype seed", shape="rules.same", half=ALLOCATES, is_random=True,
        gradient=DRAWN),
    Operator("Constant",
        "0 sparse_value value value_float value_floats value_int value_ints value_string "
        "value_strings", half=MAKES, numpy="generate.constant", gradient=SETTINGS),
    Operator("ConstantOfShape", "1 value", half=MAKES, shape="rules.filled",
        numpy="generate.filled", native="generate.constant_of_shape", gradient=STEPS),
    Operator("EyeLike", "1 @dtype k", shape="rules.same", half=MAKES, numpy="generate.eye_like",
        native="generate.eye_like", gradient=SETTINGS),
    Operator("Multinomial", "1 dtype sample_size seed", half=ALLOCATES, is_random=True,
        gradient=NOT_REAL),
    Operator("OneHot", "3 axis", half=MAKES, shape="rules.one_hot", operands="indexed.one_hot",
        numpy="generate.one_hot", native="generate.one_hot", gradient=UNWRITTEN),
    Operator("RandomNormal", "0 dtype mean scale seed shape", half=ALLOCATES, is_random=True,
        gradient=DRAWN),
    Operator("RandomNormalLike", "1 dtype mean scale seed", shape="rules.same", half=ALLOCATES,
        is_random=True, gradient=DRAWN),
    Operator("RandomUniform", "0 dtype high low seed shape", half=ALLOCATES, is_random=True,
        gradient=DRAWN),
    Operator("RandomUniformLike", "1 dtype high low seed", shape="rules.same", half=ALLOCATES,
        is_random=True, gradient=DRAWN),
    Operator("Range", "3 stash_type=1", half=MAKES, shape="rules.range_rule",
        operands="parameters.ones:0 1 2", known="evaluate.range_value",
        numpy="generate.range_kernel", native="generate.range_emitter", gradient=SETTINGS),
    Operator("Shape", "1 end start", half=MAKES, shape="rules.shape_rule",
        numpy="generate.shape_kernel", gradient=OF_SHAPES),
    Operator("Size", "1", half=MAKES, shape="rules.size", numpy="generate.size",
        gradient=OF_SHAPES),
)  # fmt: skip

"""Rows of normalizations and losses."""

from functools import partial

from tightship.graph.operators.row import (
    ALLOCATES,
    ROUNDED,
    STEPS,
    UNWRITTEN,
    Category,
    Half,
    Operator,
)

_row = partial(Operator, category=Category.NORMALIZING, shape="rules.same")

ROWS = (
    _row("BatchNormalization",
        "5 ~consumed_inputs epsilon is_test=1 momentum spatial=1 training_mode", half=Half.FLOAT32,
        operations=4, trims=True, operands="parameters.batch_normalization",
        numpy="normalization.batch_normalization", onednn="normalization.batch_normalization",
        gradient="normalization.given"),
    _row("GroupNormalization", "3 epsilon num_groups stash_type=1,10,16", half=Half.FLOAT32,
        operations=8, operands="parameters.group_normalization", numpy="normalization.group",
        native="rows.group", gradient="normalization.group"),
    _row("Hardmax", "1 axis", half=ROUNDED, numpy="softmax.hardmax", native="ranks.hardmax",
        gradient=STEPS),
    _row("InstanceNormalization", "3 ~consumed_inputs epsilon", half=Half.FLOAT32, operations=8,
        operands="parameters.instance_normalization", numpy="normalization.instance",
        native="rows.instance", gradient="normalization.instance"),
    _row("LRN", "1 alpha beta bias size", category=Category.NORMALIZING, half=Half.FLOAT32,
        numpy="normalization.local_response", onednn="normalization.local_response",
        gradient="normalization.local_response"),
    _row("LayerNormalization", "3 axis epsilon stash_type=1,10,16", half=Half.FLOAT32, operations=8,
        trims=True, operands="parameters.layer_normalization", numpy="normalization.layer",
        native="rows.over_trailing", onednn="normalization.layer_normalization",
        gradient="normalization.layer"),
    _row("LogSoftmax", "1 axis", half=Half.FLOAT32, operations=5, numpy="softmax.log_softmax",
        native="rows.softmax", onednn="normalization.softmax", gradient="activation.softmax",
        sized="sized.native.softmax"),
    _row("LpNormalization", "1 axis p", half=Half.FLOAT32, operands="parameters.along_axis",
        numpy="normalization.lp", gradient=UNWRITTEN),
    _row("MeanVarianceNormalization", "1 axes", half=ALLOCATES, gradient=UNWRITTEN),
    _row("NegativeLogLikelihoodLoss", "3 ignore_index reduction", half=ALLOCATES,
        category=Category.OTHER, shape="", operands="indexed.loss", gradient="loss.likelihood"),
    _row("RMSNormalization", "2 axis epsilon stash_type=1,10,16", half=Half.FLOAT32, operations=6,
        operands="parameters.layer_normalization", numpy="normalization.root_mean_square",
        native="rows.over_trailing", gradient="normalization.root_mean_square"),
    _row("Softmax", "1 axis", half=Half.FLOAT32, operations=5, numpy="softmax.softmax_kernel",
        native="rows.softmax", onednn="normalization.softmax",
        objects="sized.reduction.softmax", gradient="activation.softmax",
        sized="sized.native.softmax"),
    _row("SoftmaxCrossEntropyLoss", "3 ignore_index reduction", half=ALLOCATES,
        category=Category.LOSS, operations=5, shape="", operands="indexed.loss",
        gradient="loss.cross_entropy"),
)  # fmt: skip

"""NumPy kernels of the operators of gradients."""

from collections.abc import Mapping

from tightship.engine.kernels.kernel_context import Builder
from tightship.engine.on_demand import OnDemand, names

GRADIENT_BUILDERS: Mapping[str, Builder] = OnDemand(
    "tightship.engine.kernels.gradient",
    {
        "activation.ACTIVATIONS": names(
            "ClipGrad EluGrad ErfGrad GeluGrad HardSigmoidGrad HardSwishGrad LeakyReluGrad "
            "ReluGrad SigmoidGrad SoftplusGrad SwishGrad TanhGrad"
        ),
        "clip.CLIPPING": names("ClipScale SquaresAdded"),
        "convolution.CONVOLUTIONS": names(
            "AveragePoolGrad ConvGradData ConvGradWeights MaxPoolGrad"
        ),
        "dropout.DROPOUTS": names("DropoutTraining"),
        "indexing.INDEXING": names("GatherElementsGrad GatherGrad SliceGrad"),
        "layer.LAYERS": names("Layer LayerGrad"),
        "loss.LOSSES": names("NegativeLogLikelihoodLossGrad SoftmaxCrossEntropyLossGrad"),
        "normalization.NORMALIZATIONS": names(
            "BatchNormalizationGrad BatchNormalizationTraining LayerNormalizationGrad"
        ),
        "recurrent.RECURRENT": names("GRUGrad LSTMGrad RNNGrad"),
        "product.PRODUCTS": names("LogSoftmaxGrad SoftmaxGrad TransposedMatMul"),
        "update.UPDATES": names("AdamUpdate MomentumUpdate RunningUpdate SgdUpdate"),
    },
)
"""Kernel builders by operator of the training domain."""

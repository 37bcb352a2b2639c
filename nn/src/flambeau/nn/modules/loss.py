"""All losses, under PyTorch's name for this module."""

from flambeau.nn.modules.binary_loss import BCELoss, BCEWithLogitsLoss
from flambeau.nn.modules.classification_loss import CrossEntropyLoss, NLLLoss, NLLLoss2d
from flambeau.nn.modules.distribution_loss import GaussianNLLLoss, KLDivLoss, PoissonNLLLoss
from flambeau.nn.modules.loss_reduction import _Loss, _WeightedLoss
from flambeau.nn.modules.margin_loss import (
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
)
from flambeau.nn.modules.pair_loss import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from flambeau.nn.modules.regression_loss import HuberLoss, L1Loss, MSELoss, SmoothL1Loss
from flambeau.nn.modules.sequence_loss import CTCLoss

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "_Loss",
    "_WeightedLoss",
]

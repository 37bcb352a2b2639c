"""The layers, losses and containers of `flambeau.nn`, by family."""

from flambeau.nn.modules import activation as activation
from flambeau.nn.modules import adaptive as adaptive
from flambeau.nn.modules import batchnorm as batchnorm
from flambeau.nn.modules import channelshuffle as channelshuffle
from flambeau.nn.modules import container as container
from flambeau.nn.modules import conv as conv
from flambeau.nn.modules import distance as distance
from flambeau.nn.modules import dropout as dropout
from flambeau.nn.modules import flatten as flatten
from flambeau.nn.modules import fold as fold
from flambeau.nn.modules import instancenorm as instancenorm
from flambeau.nn.modules import lazy as lazy
from flambeau.nn.modules import linear as linear
from flambeau.nn.modules import loss as loss
from flambeau.nn.modules import module as module
from flambeau.nn.modules import normalization as normalization
from flambeau.nn.modules import padding as padding
from flambeau.nn.modules import pixelshuffle as pixelshuffle
from flambeau.nn.modules import pooling as pooling
from flambeau.nn.modules import rnn as rnn
from flambeau.nn.modules import sparse as sparse
from flambeau.nn.modules import transformer as transformer
from flambeau.nn.modules import upsampling as upsampling
from flambeau.nn.modules import utils as utils
from flambeau.nn.modules.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    LeakyReLU,
    LogSigmoid,
    Mish,
    PReLU,
    ReLU,
    RReLU,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
)
from flambeau.nn.modules.adaptive import (
    AdaptiveLogSoftmaxWithLoss,
)
from flambeau.nn.modules.attention import (
    MultiheadAttention,
)
from flambeau.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    SyncBatchNorm,
)
from flambeau.nn.modules.binary_loss import BCELoss, BCEWithLogitsLoss
from flambeau.nn.modules.classification_loss import CrossEntropyLoss, NLLLoss, NLLLoss2d
from flambeau.nn.modules.container import (
    ModuleDict,
    ModuleList,
    Sequential,
)
from flambeau.nn.modules.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
)
from flambeau.nn.modules.distance import (
    CosineSimilarity,
    PairwiseDistance,
)
from flambeau.nn.modules.distribution_loss import (
    GaussianNLLLoss,
    KLDivLoss,
    PoissonNLLLoss,
)
from flambeau.nn.modules.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from flambeau.nn.modules.flatten import (
    Flatten,
    Unflatten,
)
from flambeau.nn.modules.fold import (
    Fold,
    Unfold,
)
from flambeau.nn.modules.fractional_pooling import FractionalMaxPool2d, FractionalMaxPool3d
from flambeau.nn.modules.instancenorm import (
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from flambeau.nn.modules.lazy_layers import (
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
    LazyLinear,
)
from flambeau.nn.modules.linear import (
    Bilinear,
    Identity,
    Linear,
)
from flambeau.nn.modules.margin_loss import (
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
)
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.normalization import (
    CrossMapLRN2d,
    GroupNorm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from flambeau.nn.modules.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from flambeau.nn.modules.pair_loss import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from flambeau.nn.modules.parameter_container import (
    ParameterDict,
    ParameterList,
)
from flambeau.nn.modules.piecewise_activation import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    ReLU6,
    Softshrink,
    Tanhshrink,
    Threshold,
)
from flambeau.nn.modules.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from flambeau.nn.modules.probability import (
    LogSoftmax,
    Softmax,
    Softmax2d,
    Softmin,
)
from flambeau.nn.modules.regression_loss import HuberLoss, L1Loss, MSELoss, SmoothL1Loss
from flambeau.nn.modules.rnn import (
    GRU,
    LSTM,
    RNN,
    RNNBase,
)
from flambeau.nn.modules.rnn_cell import (
    GRUCell,
    LSTMCell,
    RNNCell,
    RNNCellBase,
)
from flambeau.nn.modules.sequence_loss import (
    CTCLoss,
)
from flambeau.nn.modules.shuffling import (
    ChannelShuffle,
    PixelShuffle,
    PixelUnshuffle,
)
from flambeau.nn.modules.sparse import (
    Embedding,
    EmbeddingBag,
)
from flambeau.nn.modules.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from flambeau.nn.modules.transposed_convolution import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from flambeau.nn.modules.unpooling import MaxUnpool1d, MaxUnpool2d, MaxUnpool3d
from flambeau.nn.modules.upsampling import (
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "CTCLoss",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "CrossMapLRN2d",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "KLDivLoss",
    "L1Loss",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LayerNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "NLLLoss2d",
    "PReLU",
    "PairwiseDistance",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "RReLU",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "SyncBatchNorm",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

"""What mixed precision does with each function: PyTorch 2.13's lists, by the names of functions.

A name stands for the function, for that of `nn.functional` and for the method of a tensor; one with
a dot is of that namespace. A test holds the names to the functions that there are.

* ``narrow``: runs in the narrow dtype.
* ``float32``: runs in float32.
* ``accumulates``: gives float32 unless its argument `dtype` says otherwise.
* ``widest``: its operands take the widest of their dtypes.
* ``hidden``: runs in the dtype of the state that it is given, but in no wider one than float32.
* ``pads``: ``float32`` if it repeats or reflects what is there.
* ``refused``: raises.
* ``contracts``: ``narrow`` unless nothing is left but a number.
* ``inner``: as ``contracts``, of the last dimensions; of numbers it is a product of elements.
* ``whole``: runs in the dtypes that it is given, and so do its parts; in-place forms do, too.

What no list has leaves the choice to the functions that it calls itself.
"""

from __future__ import annotations

IN_PLACE = "x.name_()"
"""What stands for the in-place form of every listed function."""


def _listed(**lists: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule, names in lists.items():
        for name in names.split():
            if found.setdefault(name, rule) != rule:
                raise TypeError(f"autocast: {name} has two rules")
    return {**found, IN_PLACE: "whole"}


_PRODUCTS = """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d linalg.matmul linalg.vecdot linear lstm matmul __matmul__ __rmatmul__ mm prelu
    rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell scaled_dot_product_attention
"""
_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""

ON_CPU = _listed(
    narrow=_PRODUCTS,
    float32=_LOSSES
    + """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky
    cholesky_inverse cholesky_solve ctc_loss fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2
    fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn
    fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d
    grid_sampler_3d inverse linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh
    linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq
    linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv
    linalg.tensorsolve lu lu_solve max_pool3d max_unpool2d max_unpool3d nanquantile orgqr ormqr
    pinverse polar prod qr quantile stft svd trace triangular_solve view_as_complex
    """,
    widest="cat concat concatenate index_copy stack",
    hidden="gru gru_cell lstm_cell",
    pads="pad",
    contracts="tensordot",
    inner="inner",
    whole="addmv bilinear convolution cross dot linalg.cross mv",
)

ON_ACCELERATORS = _listed(
    narrow=_PRODUCTS
    + """
    addmv addr chain_matmul convolution einsum gru gru_cell linalg.multi_dot lstm_cell mv
    """,
    float32=_LOSSES
    + """
    acos arccos arcsin asin cdist cosh cosine_similarity dist erfinv exp expm1 frobenius_norm
    group_norm interpolate layer_norm log log10 log1p log2 logsumexp nuclear_norm pdist pow __pow__
    __rpow__ reciprocal renorm rms_norm rsqrt sinh softplus tan upsample
    """,
    accumulates="""
    cumprod cumsum linalg.matrix_norm linalg.norm linalg.vector_norm log_softmax norm prod softmax
    softmin sum
    """,
    widest="""
    addcdiv addcmul atan2 bilinear cross dot grid_sample grid_sampler grid_sampler_2d
    grid_sampler_3d index_put linalg.cross scatter_add tensordot vdot
    """,
    refused="binary_cross_entropy",
)


def lists_of(device_type: str) -> dict[str, str]:
    """The rules of a type of devices."""
    return ON_CPU if device_type in ("cpu", "ref") else ON_ACCELERATORS

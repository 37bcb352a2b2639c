"""Attributes that PyTorch's tensors have and ours have not: whoever asks is told what to use."""

from __future__ import annotations

from flambeau.absence import Absent

# Those that `absence.txt` lists, which only errors read.
NAMES = frozenset(
    """
    arctan2_ ccol_indices chalf col_indices const_data_ptr crow_indices
    dequantize dim_order hash_tensor int_repr ipu is_ipu is_maia is_mtia is_vulkan is_xla mtia
    q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme reinforce resize resize_as
    resize_as_sparse_ row_indices slice_inverse sparse_resize_ sparse_resize_and_clear_
    to_mkldnn to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_csc
    to_sparse_csr volatile xpu
    """.split()
)


def tell(tensor: type) -> None:
    """Let a class of tensors say it of the names that it lacks."""
    for name in NAMES:
        absent = Absent()
        absent.__set_name__(tensor, name)
        setattr(tensor, name, absent)

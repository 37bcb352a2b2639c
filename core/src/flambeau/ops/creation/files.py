"""Tensors over files."""

from __future__ import annotations

from os import PathLike

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike
from flambeau._types.layout import layout as Layout
from flambeau.ops.creation.creation import empty
from flambeau.ops.declaration.public import public


@public(method=False)
@takes_as_annotated
def from_file(
    filename: str | PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A vector over the numbers in a file, which are read when they are needed.

    Args:
        filename: the file; made, or made longer, if `shared`.
        shared: whether writes to the tensor go to the file.
        size: how many numbers.
        dtype: of the numbers; the default one if None.
        layout: accepted as PyTorch accepts it.
        device: the CPU.
        requires_grad: whether operations on it are recorded.
        pin_memory: must be False.

    Raises:
        RuntimeError: the file cannot be opened, or it is too small and not `shared`; another
            device than the CPU, or page-locked memory, is asked for.

    >>> import flambeau as fb, tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     _ = fb.from_file(f.name, shared=True, size=2, dtype=fb.uint8).fill_(66)
    ...     f.read()
    b'BB'
    """
    if pin_memory or (device is not None and Device(device).type != "cpu"):
        raise RuntimeError("from_file(): files are mapped into memory of the CPU, not pinned")
    dtype = dtype or D.get_default_dtype()
    result = empty(0, dtype=dtype, device="cpu")
    if size:
        stored = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
        result = result.set_(stored, 0, (size,), (1,))
    return result.requires_grad_(requires_grad)

"""Matrix products by cuBLASLt: descriptors and algorithms that are found once per signature.

CuPy's own products cannot be part of a graph, have no epilogue and take memory of their own; these
have a workspace per stream.  Where the package ``nvmath-python`` is missing, CuPy's serve.

What follows a product in the same call, its epilogue, is a bias, an activation, or both; of gelu
cuBLASLt has the form with tanh.  That is what the op ``linear_activation`` asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol

import numpy as np

from flambeau.plugin import make_lock, numerics
from flambeau_cupy.device.array_module import Array
from flambeau_cupy.dtypes import BFLOAT16, FLOAT16, FLOATS
from flambeau_cupy.layer import Layer
from flambeau_cupy.libraries.planning import ALIGNMENT, Library

# cudaDataType, cublasComputeType_t and the attributes of cublasLt.h, whose numbers are its ABI.
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DATA_TYPES = {FLOAT32: 0, FLOAT64: 1, FLOAT16: 2, BFLOAT16: 14}
COMPUTE_32F, COMPUTE_64F, COMPUTE_TF32 = 68, 70, 77
TRANSA, TRANSB, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
AUX_POINTER, AUX_LEADING = 11, 12
BATCH_COUNT, BATCH_STRIDE = 5, 6
MAX_WORKSPACE, ALIGNMENTS = 1, (5, 6, 7, 8)
NO_EPILOGUE, ADD_BIAS, KEEP_Z = 1, 4, 128
ACTIVATIONS = {"": 0, "relu": 2, "gelu_tanh": 32}
NOT_SUPPORTED = 15
WORKSPACE = 32 << 20
# cublasLtMatmulHeuristicResult_t; its first 64 bytes are the algorithm.
RESULT = np.dtype(
    [
        ("algorithm", np.uint64, 8),
        ("workspace", np.uint64),
        ("state", np.int32),
        ("waves", np.float32),
        ("reserved", np.int32, 4),
    ]
)


class Runtime(Protocol):
    """What products run on.

    Attributes:
        lt: the module ``nvmath.bindings.cublasLt``.
    """

    lt: Any

    def handle(self) -> int:
        """The handle of the current device."""
        ...

    def stream(self) -> int:
        """The address of the current stream."""
        ...

    def device(self) -> int:
        """The current device."""
        ...


@dataclass(frozen=True)
class Factor:
    """A row-major matrix, or one whose transpose is row-major, or a batch of them.

    Attributes:
        leading: elements from one row (or column) to the next.
        turned: whether it is the transpose that is row-major.
        step: elements from one matrix of the batch to the next; 0 for the same one.
        alignment: a power of two that divides the address, at most 16.
    """

    leading: int
    turned: bool
    step: int
    alignment: int


@dataclass(frozen=True)
class Signature:
    """What a plan depends on: (rows, inner)·(inner, columns), `batch` times.

    Attributes:
        epilogue: what follows the product, by the numbers of cuBLASLt.
    """

    rows: int
    columns: int
    inner: int
    batch: int
    left: Factor
    right: Factor
    dtype: np.dtype
    epilogue: int
    tf32: bool
    device: int


class Plan:
    """Descriptors and the algorithm of a product.

    cuBLASLt reads matrices by columns, so it is asked for the transpose: right factor first.

    Args:
        lt: the bindings.
        handle: of the device.
        signature: what is planned.

    Raises:
        LookupError: cuBLASLt has no algorithm for it.
    """

    def __init__(self, lt: Any, handle: int, signature: Signature) -> None:
        self._lt, self._lock = lt, make_lock()
        s, kind = signature, DATA_TYPES[signature.dtype]
        scale = FLOAT64 if s.dtype == FLOAT64 else FLOAT32
        compute = COMPUTE_64F if s.dtype == FLOAT64 else COMPUTE_TF32 if s.tf32 else COMPUTE_32F
        self._one, self._zero = np.ones((), scale), np.zeros((), scale)
        self._product = lt.matmul_desc_create(compute, DATA_TYPES[scale])
        self._describe(TRANSA, np.int32(s.right.turned))
        self._describe(TRANSB, np.int32(s.left.turned))
        self._describe(EPILOGUE, np.int32(s.epilogue))
        if s.epilogue & KEEP_Z:
            self._describe(AUX_LEADING, np.int64(s.columns))
        self._right = self._layout(kind, s.columns, s.inner, s.right, s.batch)
        self._left = self._layout(kind, s.inner, s.rows, s.left, s.batch)
        out = Factor(s.columns, False, s.rows * s.columns, 16)
        self._out = self._layout(kind, s.columns, s.rows, out, s.batch)
        preference = lt.matmul_preference_create()
        self._set(
            lt.matmul_preference_set_attribute, preference, MAX_WORKSPACE, np.uint64(WORKSPACE)
        )
        for attribute, factor in zip(ALIGNMENTS, (s.right, s.left, out, out), strict=True):
            value = np.uint32(factor.alignment)
            self._set(lt.matmul_preference_set_attribute, preference, attribute, value)
        self._result, count = np.zeros((), RESULT), np.zeros((), np.int32)
        try:
            lt.matmul_algo_get_heuristic(
                *(handle, self._product, self._right, self._left, self._out, self._out, preference),
                *(1, self._result.ctypes.data, count.ctypes.data),
            )
        except lt.cuBLASLtError as error:
            if error.status != NOT_SUPPORTED:
                raise
        finally:
            lt.matmul_preference_destroy(preference)
        if not count:
            raise LookupError(f"cuBLASLt has no algorithm for {signature}")

    def execute(
        self,
        handle: int,
        left: int,
        right: int,
        out: int,
        bias: int,
        z: int,
        workspace: int,
        stream: int,
    ) -> None:
        """Write the product of the arrays at these addresses, and what the activation reads."""
        one, zero, algorithm = (a.ctypes.data for a in (self._one, self._zero, self._result))
        with self._lock:  # both addresses stand in the descriptor
            if bias:
                self._describe(BIAS_POINTER, np.uint64(bias))
            if z:
                self._describe(AUX_POINTER, np.uint64(z))
            self._lt.matmul(
                *(handle, self._product, one, right, self._right, left, self._left),
                *(zero, out, self._out, out, self._out, algorithm, workspace, WORKSPACE, stream),
            )

    def _describe(self, attribute: int, value: object) -> None:
        self._set(self._lt.matmul_desc_set_attribute, self._product, attribute, value)

    def _layout(self, kind: int, rows: int, columns: int, factor: Factor, batch: int) -> int:
        """A matrix by columns; a turned one is stored as its transpose."""
        shape = (columns, rows) if factor.turned else (rows, columns)
        made = self._lt.matrix_layout_create(kind, *shape, factor.leading)
        if batch > 1:
            put = self._lt.matrix_layout_set_attribute
            self._set(put, made, BATCH_COUNT, np.int32(batch))
            self._set(put, made, BATCH_STRIDE, np.int64(factor.step))
        return made

    def _set(self, put: Callable[..., None], what: int, attribute: int, value: object) -> None:
        held = np.asarray(value)
        put(what, attribute, held.ctypes.data, held.nbytes)


class Products(Library[Runtime]):
    """The matrix products of a device type.

    Attributes:
        plans: by signature; None where cuBLASLt has no algorithm.
    """

    ops: ClassVar = {"linear_activation": "forward"}

    def __init__(self, layer: Layer, load: Callable[[], Runtime]) -> None:
        super().__init__(layer, load)
        self.plans: dict[Signature, Plan | None] = {}
        self._workspaces: dict[tuple[int, int], Array] = {}

    def __call__(self, a: Array, b: Array, bias: Array | None = None) -> Array | None:
        """``a @ b + bias`` by the rules of the array API, or None where another way must be taken.

        Args:
            a: (..., rows, inner) or (inner).
            b: (..., inner, columns) or (inner).
            bias: (columns), or None; others are not taken.
        """
        return self._product(a, b, bias)

    def takes(
        self, x: Array, weight: Array, bias: Array | None, activation: str, saves: bool
    ) -> bool:
        """Whether `forward` is one call for these arguments."""
        kind = x.dtype
        if kind not in FLOATS or weight.dtype != kind or x.ndim < 2 or weight.ndim != 2:
            return False
        if x.shape[-1] != weight.shape[1]:
            return False
        if bias is not None and bias.shape != weight.shape[:1]:
            return False
        if not x.size or not weight.size or self.runtime() is None:
            return False
        # Rows of what is kept for the gradient are read and written eight elements at a time.
        return activation == "relu" or not saves or weight.shape[0] % 8 == 0

    def forward(
        self, x: Array, weight: Array, bias: Array | None, activation: str, saves: bool
    ) -> tuple[Array, Array] | None:
        """The results of ``linear_activation``, or None where it must decompose."""
        if not self.takes(x, weight, bias, activation, saves):
            return None
        kept = saves and activation != "relu"
        shape = (*x.shape[:-1], weight.shape[0]) if kept else (0,)
        z = self.layer.xp.empty(shape, x.dtype)
        out = self._product(x, weight.T, bias, activation, z if kept else None)
        return None if out is None else (out, z)

    def _product(
        self,
        a: Array,
        b: Array,
        bias: Array | None,
        activation: str = "",
        z: Array | None = None,
    ) -> Array | None:
        kind = a.dtype
        if kind not in FLOATS or b.dtype != kind or (runtime := self.runtime()) is None:
            return None
        xp = self.layer.xp
        left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        batch_shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = (*batch_shape, left.shape[-2], right.shape[-1])
        if bias is not None and bias.shape != shape[-1:]:
            return None
        drop = (*([-2] if a.ndim == 1 else []), *([-1] if b.ndim == 1 else []))
        inner = left.shape[-1]
        out = (xp.empty if inner else xp.zeros)(shape, kind)
        if out.size and inner:
            if right.ndim == 2 and left.ndim > 2:  # rows of all matrices in one product
                left = self.layer.dense(left).reshape(-1, inner)
                batch_shape = ()
            first, second = (self._factor(m, batch_shape) for m in (left, right))
            epilogue = ACTIVATIONS[activation]
            epilogue |= (ADD_BIAS if bias is not None else 0) | (KEEP_Z if z is not None else 0)
            signature = Signature(
                rows=left.shape[-2],
                columns=shape[-1],
                inner=inner,
                batch=prod(batch_shape),
                left=first[1],
                right=second[1],
                dtype=kind,
                epilogue=epilogue or NO_EPILOGUE,
                tf32=kind == FLOAT32 and numerics.matmul_tf32,
                device=runtime.device(),
            )
            if not self._run(runtime, signature, first[0], second[0], bias, out, z):
                return None
        elif bias is not None:
            out += bias
        return out.reshape([n for i, n in enumerate(shape) if i - len(shape) not in drop])

    def _run(
        self,
        runtime: Runtime,
        signature: Signature,
        left: Array,
        right: Array,
        bias: Array | None,
        out: Array,
        z: Array | None,
    ) -> bool:
        try:
            plan = self.plans[signature]
        except KeyError:
            try:
                plan = Plan(runtime.lt, runtime.handle(), signature)
            except LookupError:
                plan = None
            self.plans[signature] = plan
        if plan is None:
            return False
        at = self.layer.address
        added = None if bias is None else self._vector(bias.astype(out.dtype, copy=False))
        stream = runtime.stream()
        workspace = self._workspace(signature.device, stream)
        plan.execute(
            *(runtime.handle(), at(left), at(right), at(out)),
            *(0 if added is None else at(added), 0 if z is None else at(z)),
            *(at(workspace), stream),
        )
        return True

    def _vector(self, bias: Array) -> Array:
        """A bias where epilogues can read it, several elements at a time."""
        dense = self.layer.dense(bias)
        return dense.copy() if self.layer.address(dense) % ALIGNMENT else dense

    def _workspace(self, device: int, stream: int) -> Array:
        """The memory of a stream: its products run one after another."""
        key = device, stream
        if key not in self._workspaces:
            self._workspaces[key] = self.layer.xp.empty((WORKSPACE,), np.uint8)
        return self._workspaces[key]

    def _factor(self, m: Array, batch_shape: tuple[int, ...]) -> tuple[Array, Factor]:
        """A matrix or a batch as cuBLASLt can read it, copied where it cannot."""
        found = self._read(m, batch_shape)
        if found is None:
            m = m.copy("C")
            found = self._read(m, batch_shape)
            if found is None:  # a batch that is repeated along some dimensions only
                wide = self.layer.xp.broadcast_to(m, (*batch_shape, *m.shape[-2:]))
                m = wide.copy("C")
                found = self._read(m, batch_shape)
                assert found is not None
        return m, found

    def _read(self, m: Array, batch_shape: tuple[int, ...]) -> Factor | None:
        size = m.itemsize
        *lead, down, along = [s // size for s in m.strides]
        rows, columns = m.shape[-2:]
        if (along == 1 or columns == 1) and (down >= columns or rows == 1):
            leading, turned = max(down, columns) if rows > 1 else columns, False
        elif (down == 1 or rows == 1) and (along >= rows or columns == 1):
            leading, turned = max(along, rows) if columns > 1 else rows, True
        else:
            return None
        step = 0
        if prod(m.shape[:-2]) > 1:
            if m.shape[:-2] != batch_shape:
                return None
            # One step for all: the batch dimensions are as those of one dimension.
            wanted = 0
            for n, stride in zip(reversed(batch_shape), reversed(lead), strict=True):
                if n == 1:
                    continue
                if not wanted:
                    step = wanted = stride
                elif stride != wanted:
                    return None
                wanted *= n
            if step <= 0:
                return None
        address = self.layer.address(m)
        alignment = min(16, address & -address) if address else 16
        return Factor(leading, turned, step, alignment)

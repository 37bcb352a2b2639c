"""Attention by cuDNN: one kernel for all of a pass, planned once per signature.

What cuDNN computes is the op ``fused_attention``: the weights are never stored, and the backward
pass finds them again from the logarithm of each row's sum.  It takes half precisions whose sizes of
heads are multiples of 8.  Queries of one row, as they come when words are generated one by one,
are left to matrix products: each number of keys would want a plan of its own.

A row of the bias may be -∞ throughout.  Its weights are 0, by the meaning of the op; the library
sees zeros in the place of that row and makes something of it that nobody reads: the output is
overwritten, and in the backward pass a sum of +∞ takes the row's weights away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array
from flambeau_cupy.dtypes import HALVES
from flambeau_cupy.layer import Layer
from flambeau_cupy.libraries.planning import (
    ALIGNMENT,
    ELEMENTS,
    CudnnLibrary,
    Runtime,
    Side,
    Sizes,
    strides_of,
)

# What tensors are called in plans.
QUERY, KEY, VALUE, BIAS, OUTPUT, TOTAL = 1, 2, 3, 4, 5, 6
OVER_OUTPUT, OVER_QUERY, OVER_KEY, OVER_VALUE, OVER_BIAS = 11, 12, 13, 14, 15
GRADIENTS = OVER_QUERY, OVER_KEY, OVER_VALUE
CLOSED = {"float16": np.uint16(0xFC00), "bfloat16": np.uint16(0xFF80)}  # the bits of -∞


@dataclass(frozen=True)
class Signature:
    """What a plan depends on.

    Attributes:
        sides: shape and strides of query, key, value and output; in the backward pass also of the
            output's gradient and of the three gradients.
        bias: the shape of the bias, whose last two dimensions are those of the scores, or None.
        dtype: of all but the sums, which are float32.
        over_bias: whether the gradient of the bias is wanted; its shape is that of the bias.
    """

    sides: tuple[Side, ...]
    bias: Sizes | None
    dtype: str
    causal: bool
    scale: float
    backward: bool
    over_bias: bool
    deterministic: bool
    device: int


class Plan:
    """A pass of attention, planned.

    Args:
        cudnn: the module of the frontend.
        signature: what is planned.
        where: which device, see `planning.Runtime`.
        build: whether to make what executes it; that needs the device.

    Attributes:
        graph: the frontend's.
        workspace: bytes that an execution needs beside its arrays.

    Raises:
        cudnn.cudnnGraphNotSupportedError: cuDNN has no engine for it.
    """

    def __init__(
        self, cudnn: Any, signature: Signature, where: dict[str, Any], build: bool = True
    ) -> None:
        kinds = cudnn.data_type
        element, single = getattr(kinds, ELEMENTS[signature.dtype]), kinds.FLOAT
        self.graph = graph = cudnn.pygraph(
            io_data_type=element,
            intermediate_data_type=single,
            compute_data_type=single,
            **where,
        )

        def tensor(uid: int, side: Side, kind: object = element) -> Any:
            dim, stride = side
            return graph.tensor(dim=list(dim), stride=list(stride), data_type=kind, uid=uid)

        def result(made: Any, uid: int, side: Side, kind: object = element) -> None:
            made.set_output(True).set_uid(uid).set_dim(list(side[0])).set_stride(list(side[1]))
            made.set_data_type(kind)

        query, key, value, output, *others = signature.sides
        (batch, heads, rows, _), _ = query
        total = (batch, heads, rows, 1), (heads * rows, rows, 1, 1)
        bias = None if signature.bias is None else (signature.bias, _dense(signature.bias))
        common = {
            "q": tensor(QUERY, query),
            "k": tensor(KEY, key),
            "v": tensor(VALUE, value),
            "bias": None if bias is None else tensor(BIAS, bias),
            "attn_scale": signature.scale,
            "use_causal_mask": signature.causal,
        }
        if signature.backward:
            over_output, *gradients = others
            wanted = bias if signature.over_bias else None
            over_bias = None if wanted is None else tensor(OVER_BIAS, wanted)
            made = graph.sdpa_backward(
                **common,
                o=tensor(OUTPUT, output),
                dO=tensor(OVER_OUTPUT, over_output),
                stats=tensor(TOTAL, total, single),
                dBias=over_bias,
                use_deterministic_algorithm=signature.deterministic,
            )
            for uid, gradient, side in zip(GRADIENTS, made, gradients, strict=True):
                result(gradient, uid, side)
            if wanted is not None:
                result(over_bias, OVER_BIAS, wanted)
        else:
            made, sums = graph.sdpa(**common, generate_stats=True)
            result(made, OUTPUT, output)
            result(sums, TOTAL, total, single)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        self.workspace = 0
        if build:
            graph.build_plans(cudnn.build_plan_policy.HEURISTICS_CHOICE)
            self.workspace = graph.get_workspace_size()

    def execute(self, addresses: dict[int, int], workspace: int, handle: object) -> None:
        """Run it on the arrays at these addresses."""
        self.graph.execute(addresses, workspace, handle=handle)


class Attention(CudnnLibrary):
    """Attention of a device type.

    Attributes:
        plans: by signature; None where cuDNN has no plan.
    """

    ops: ClassVar = {"fused_attention": "forward", "fused_attention_backward": "backward"}

    def __init__(self, layer: Layer, load: Callable[[], Runtime]) -> None:
        super().__init__(layer, load)
        self.plans: dict[Signature, Plan | None] = {}

    def takes(
        self,
        query: Array,
        key: Array,
        value: Array,
        bias: Array | None,
        causal: bool,
        scale: float,
    ) -> bool:
        """Whether there is a plan for the forward pass of these arrays."""
        if query.ndim != 4 or query.dtype not in HALVES or query.shape[2] == 1:
            return False
        if not _fit(query, key, value, bias) or (bias is not None and causal):
            return False
        found = self._planned(query, key, value, bias, causal, scale)
        return found is not None

    def forward(
        self,
        query: Array,
        key: Array,
        value: Array,
        bias: Array | None,
        causal: bool,
        scale: float,
    ) -> tuple[Array, Array] | None:
        """Output and logarithms of sums, or None where it must decompose."""
        if not self.takes(query, key, value, bias, causal, scale):
            return None
        found = self._planned(query, key, value, bias, causal, scale)
        assert found is not None
        plan, runtime = found
        xp = self.layer.xp
        output = self._made((*query.shape[:3], value.shape[3]), query)
        total = xp.empty((*query.shape[:3], 1), np.float32)
        shown, closed = self._shown(bias, query, key, False)
        arrays = {
            QUERY: self._laid_out(query),
            KEY: self._laid_out(key),
            VALUE: self._laid_out(value),
            BIAS: shown,
            OUTPUT: output,
            TOTAL: total,
        }
        self._execute(plan, runtime, arrays)
        if closed is not None:
            xp.copyto(output.view(np.uint16), np.uint16(0), where=closed)
            xp.copyto(total, np.float32(-np.inf), where=closed)
        return output, total

    def backward(
        self,
        over_output: Array | None,
        over_total: Array | None,
        query: Array,
        key: Array,
        value: Array,
        bias: Array | None,
        output: Array,
        total: Array,
        causal: bool,
        scale: float,
        over_bias: bool,
    ) -> tuple[Array, Array, Array, Array] | None:
        """The gradients, the last of the bias if that is wanted; None where it must decompose."""
        if over_output is None or over_total is not None or query.dtype not in HALVES:
            return None
        if not _fit(query, key, value, bias) or (bias is not None and causal):
            return None
        if self.runtime() is None:
            return None
        xp, kind = self.layer.xp, query.dtype
        shown, closed = self._shown(bias, query, key, over_bias)
        if closed is not None:
            over_output = xp.where(closed, np.uint16(0), over_output.view(np.uint16)).view(kind)
            total = xp.where(closed, np.float32(np.inf), total)
        given = query, key, value, bias, causal, scale
        found = self._planned(*given, (output, over_output), over_bias)
        if found is None:
            return None
        plan, runtime = found
        gradients = [self._made(a.shape, a) for a in (query, key, value)]
        into = xp.empty(shown.shape, kind) if shown is not None and over_bias else None
        arrays = {
            QUERY: self._laid_out(query),
            KEY: self._laid_out(key),
            VALUE: self._laid_out(value),
            BIAS: shown,
            OUTPUT: self._laid_out(output),
            TOTAL: self._dense(total),
            OVER_OUTPUT: self._laid_out(over_output),
            **dict(zip(GRADIENTS, gradients, strict=True)),
            OVER_BIAS: into,
        }
        self._execute(plan, runtime, arrays)
        last = xp.empty((0,), kind) if into is None else self._summed(into, bias)
        return gradients[0], gradients[1], gradients[2], last

    def _planned(
        self,
        query: Array,
        key: Array,
        value: Array,
        bias: Array | None,
        causal: bool,
        scale: float,
        backward: tuple[Array, Array] | None = None,
        over_bias: bool = False,
    ) -> tuple[Plan, Runtime] | None:
        runtime = self.runtime()
        if runtime is None:
            return None
        made = (*query.shape[:3], value.shape[3])
        sides = [self._side(a) for a in (query, key, value)]
        if backward is None:
            sides.append((made, _made_strides(made, query)))
        else:
            sides += [self._side(a) for a in backward]
            sides += [(a.shape, _made_strides(a.shape, a)) for a in (query, key, value)]
        signature = Signature(
            sides=tuple(sides),
            bias=None if bias is None else _bias_shape(bias, query, key, over_bias),
            dtype=query.dtype.name,
            causal=causal,
            scale=scale,
            backward=backward is not None,
            over_bias=over_bias,
            deterministic=backward is not None and numerics.deterministic,
            device=runtime.device(),
        )
        try:
            plan = self.plans[signature]
        except KeyError:
            try:
                plan = Plan(runtime.cudnn, signature, runtime.where())
            except runtime.cudnn.cudnnGraphNotSupportedError:
                plan = None
            self.plans[signature] = plan
        return None if plan is None else (plan, runtime)

    def _execute(self, plan: Plan, runtime: Runtime, arrays: dict[int, Array | None]) -> None:
        at = self.layer.address
        addresses = {uid: at(a) for uid, a in arrays.items() if a is not None}
        _room, workspace = self.room(plan.workspace)
        plan.execute(addresses, workspace, runtime.handle())

    def _side(self, a: Array) -> Side:
        """The shape of an array and the strides with which a plan reads it."""
        return a.shape, _readable(a, self.layer.address(a)) or _dense(a.shape)

    def _laid_out(self, a: Array) -> Array:
        """`a` where plans can read it, else a row-major copy."""
        return a if _readable(a, self.layer.address(a)) else a.copy("C")

    def _dense(self, a: Array) -> Array:
        dense = self.layer.dense(a)
        return dense.copy() if self.layer.address(dense) % ALIGNMENT else dense

    def _made(self, shape: Sizes, like: Array) -> Array:
        """A new array, heads and rows in memory in the order of `like`."""
        if not _rows_first(like):
            return self.layer.xp.empty(shape, like.dtype)
        batch, heads, rows, size = shape
        return self.layer.xp.empty((batch, rows, heads, size), like.dtype).swapaxes(1, 2)

    def _shown(
        self, bias: Array | None, query: Array, key: Array, whole: bool
    ) -> tuple[Array | None, Array | None]:
        """The bias as a plan reads it, and which rows of it are closed to all keys."""
        if bias is None:
            return None, None
        xp = self.layer.xp
        shape = _bias_shape(bias, query, key, whole)
        # As bits: CuPy knows few functions of bfloat16.
        bits = bias.reshape((1,) * (4 - bias.ndim) + bias.shape).view(np.uint16)
        closed = xp.all(bits == CLOSED[bias.dtype.name], axis=-1, keepdims=True)
        shown = xp.broadcast_to(xp.where(closed, np.uint16(0), bits), shape)
        return self._dense(shown).view(bias.dtype), closed

    def _summed(self, gradient: Array, bias: Array) -> Array:
        """The gradient of a bias that was repeated, summed in float32."""
        narrow = (1,) * (4 - bias.ndim) + bias.shape
        repeated = tuple([i for i in range(4) if narrow[i] < gradient.shape[i]])
        if repeated:
            total = gradient.astype(np.float32).sum(axis=repeated, keepdims=True)
            gradient = total.astype(gradient.dtype)
        return gradient.reshape(bias.shape)


def _fit(query: Array, key: Array, value: Array, bias: Array | None) -> bool:
    """Whether shapes and dtypes are those of the op, and nothing is empty."""
    kind, (batch, heads, rows, size) = query.dtype, query.shape
    if key.ndim != 4 or value.ndim != 4 or key.dtype != kind or value.dtype != kind:
        return False
    own, columns = key.shape[1:3]
    if key.shape != (batch, own, columns, size) or value.shape[:3] != (batch, own, columns):
        return False
    if not (query.size and key.size and value.size) or heads % own:
        return False
    if bias is None:
        return True
    scores = (batch, heads, rows, columns)[4 - min(bias.ndim, 4) :]
    whole = all(n in (1, m) for n, m in zip(bias.shape, scores, strict=False))
    return bias.dtype == kind and bias.ndim <= 4 and whole


def _bias_shape(bias: Array, query: Array, key: Array, whole: bool) -> Sizes:
    """The shape of the bias in a plan: as given for batch and heads, unless it must be `whole`."""
    lead = query.shape[:2] if whole else ((1,) * (4 - bias.ndim) + bias.shape)[:2]
    return (*lead, query.shape[2], key.shape[2])


def _dense(shape: Sizes) -> Sizes:
    strides = [1]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides))


def _rows_first(a: Array) -> bool:
    """Whether the heads of a row are neighbours in memory, as a product for all heads leaves them.

    Only such strides as `_readable` has.
    """
    _, heads, rows, _ = strides_of(a)
    return a.shape[1] > 1 and a.shape[2] > 1 and 0 < heads < rows


def _made_strides(shape: Sizes, like: Array) -> Sizes:
    if not _rows_first(like):
        return _dense(shape)
    batch, rows, heads, last = _dense((shape[0], shape[2], shape[1], shape[3]))
    return batch, heads, rows, last


def _readable(a: Array, address: int) -> Sizes | None:
    """The strides of an array, if plans can read it: by vectors of 16 bytes, nothing repeated."""
    if address % ALIGNMENT:
        return None
    found, vector = [], ALIGNMENT // a.itemsize
    for n, step in zip(a.shape[:-1], strides_of(a)[:-1], strict=True):
        step = step if n > 1 else a.shape[-1]
        if step <= 0 or step % vector:
            return None
        found.append(step)
    if a.shape[-1] > 1 and strides_of(a)[-1] != 1:
        return None
    return (*found, 1)

"""Convolutions by cuDNN: plans that are made once per signature and then executed.

A plan belongs to shapes, strides, dtype, the geometry and the switches of `flambeau.backends`; to
make one takes milliseconds, to find it again a dictionary.  What cuDNN cannot plan decomposes, as
everything does where the package ``nvidia-cudnn-frontend`` or cuDNN is missing, or
``flambeau.backends.cudnn.enabled`` is False.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array, channels_last
from flambeau_cupy.dtypes import FLOATS
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

INPUT, WEIGHT, OUTPUT = 1, 2, 3  # what tensors are called in plans
FORWARD, INPUT_GRAD, WEIGHT_GRAD = "fprop", "dgrad", "wgrad"


@dataclass(frozen=True)
class Signature:
    """What a plan depends on."""

    kind: str
    input: Side
    weight: Side
    output: Side
    dtype: str
    padding: Sizes
    stride: Sizes
    dilation: Sizes
    tf32: bool
    deterministic: bool
    benchmark: bool
    device: int


class Plan:
    """One convolution, or one of its gradients, planned.

    Args:
        cudnn: the module of the frontend.
        signature: what is planned.
        where: which device, see `Runtime.where`.

    Attributes:
        graph: the frontend's.
        workspace: bytes that an execution needs beside its arrays.

    Raises:
        cudnn.cudnnGraphNotSupportedError: cuDNN has no engine for it.
    """

    def __init__(self, cudnn: Any, signature: Signature, where: dict[str, Any]) -> None:
        kinds, notes = cudnn.data_type, cudnn.numerical_note
        element = getattr(kinds, ELEMENTS[signature.dtype])
        compute = kinds.DOUBLE if signature.dtype == "float64" else kinds.FLOAT
        self.graph = graph = cudnn.pygraph(
            io_data_type=element,
            intermediate_data_type=compute,
            compute_data_type=compute,
            **where,
        )
        sides = {INPUT: signature.input, WEIGHT: signature.weight, OUTPUT: signature.output}

        def tensor(uid: int) -> Any:
            dim, stride = sides[uid]
            return graph.tensor(dim=list(dim), stride=list(stride), data_type=element, uid=uid)

        geometry = {
            "padding": list(signature.padding),
            "stride": list(signature.stride),
            "dilation": list(signature.dilation),
        }
        if signature.kind == FORWARD:
            uid = OUTPUT
            made = graph.conv_fprop(image=tensor(INPUT), weight=tensor(WEIGHT), **geometry)
        elif signature.kind == INPUT_GRAD:
            uid = INPUT
            made = graph.conv_dgrad(loss=tensor(OUTPUT), filter=tensor(WEIGHT), **geometry)
        else:
            uid = WEIGHT
            made = graph.conv_wgrad(image=tensor(INPUT), loss=tensor(OUTPUT), **geometry)
        dim, stride = sides[uid]
        made.set_output(True).set_uid(uid).set_dim(list(dim)).set_stride(list(stride))
        made.set_data_type(element)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        refused = []
        if signature.dtype == "float32" and not signature.tf32:
            refused = [notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS]
        if signature.deterministic:
            refused.append(notes.NONDETERMINISTIC)
        if refused:
            graph.deselect_numeric_notes(refused)
        graph.check_support()
        policy = cudnn.build_plan_policy
        graph.build_plans(policy.ALL if signature.benchmark else policy.HEURISTICS_CHOICE)
        self._chosen: int | None = None
        self.workspace = graph.get_workspace_size()

    def execute(self, addresses: dict[int, int], workspace: int, handle: object) -> None:
        """Run it on the arrays at these addresses."""
        if self._chosen is None:
            self.graph.execute(addresses, workspace, handle=handle)
        else:
            self.graph.execute_plan_at_index(addresses, workspace, self._chosen, handle=handle)

    def candidates(self) -> list[int]:
        """The numbers of the plans among which `choose` may choose."""
        return list(range(self.graph.get_execution_plan_count()))

    def choose(self, number: int) -> None:
        """Execute this plan from now on."""
        self._chosen = number
        self.workspace = self.graph.get_workspace_size_plan_at_index(number)


class Convolutions(CudnnLibrary):
    """The convolution ops of a device type.

    Attributes:
        plans: by signature; None where cuDNN has no plan.
    """

    ops: ClassVar = {
        f"conv{n}d{form}": method
        for n in (2, 3)
        for form, method in (
            ("", "forward"),
            ("_input_grad", "input_grad"),
            ("_weight_grad", "weight_grad"),
        )
    }

    def __init__(self, layer: Layer, load: Callable[[], Runtime]) -> None:
        super().__init__(layer, load)
        self.plans: dict[Signature, Plan | None] = {}

    def forward(
        self,
        x: Array,
        w: Array,
        bias: Array | None,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Array | None:
        """The convolution, or None where it must decompose."""
        rank = len(stride)
        spans = zip(x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
        size = tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in spans])
        shape = (x.shape[0], w.shape[0], *size)
        out = self._run(FORWARD, x, w, shape, x, (padding, stride, dilation))
        if out is not None and bias is not None:
            out += bias.reshape((-1, *(1,) * rank))
        return out

    def input_grad(
        self,
        grad: Array,
        w: Array,
        shape: Sizes,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Array | None:
        """The gradient in the input, or None."""
        return self._run(INPUT_GRAD, shape, w, grad, grad, (padding, stride, dilation))

    def weight_grad(
        self,
        grad: Array,
        x: Array,
        shape: Sizes,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Array | None:
        """The gradient in the weight, or None."""
        return self._run(WEIGHT_GRAD, x, shape, grad, x, (padding, stride, dilation))

    def _run(
        self,
        kind: str,
        x: Array | Sizes,
        w: Array | Sizes,
        y: Array | Sizes,
        like: Array,
        geometry: tuple[Sizes, Sizes, Sizes],
    ) -> Array | None:
        """A convolution of arrays, the one of which only the shape is given being the result.

        All have the layout of `like`: row-major, or with the channels last where it has them.
        """
        dtype = like.dtype
        if dtype not in FLOATS or (runtime := self.runtime()) is None:
            return None
        shapes = [a if isinstance(a, tuple) else a.shape for a in (x, w, y)]
        if not all(map(prod, shapes)):
            return None
        last = channels_last(like)
        arrays = [
            self._made(a, dtype, last) if isinstance(a, tuple) else self._laid_out(a, dtype, last)
            for a in (x, w, y)
        ]
        tensors = [(tuple(a.shape), strides_of(a)) for a in arrays]
        padding, stride, dilation = geometry
        signature = Signature(
            kind=kind,
            input=tensors[0],
            weight=tensors[1],
            output=tensors[2],
            dtype=dtype.name,
            padding=padding,
            stride=stride,
            dilation=dilation,
            tf32=dtype != np.float32 or numerics.convolution_tf32,
            deterministic=numerics.deterministic,
            benchmark=numerics.benchmark,
            device=runtime.device(),
        )
        uids = (INPUT, WEIGHT, OUTPUT)
        addresses = {uid: self.layer.address(a) for uid, a in zip(uids, arrays, strict=True)}
        plan = self._plan(signature, runtime, addresses)
        if plan is None:
            return None
        self._execute(plan, addresses, runtime)
        return arrays[[isinstance(a, tuple) for a in (x, w, y)].index(True)]

    def _plan(
        self, signature: Signature, runtime: Runtime, addresses: dict[int, int]
    ) -> Plan | None:
        try:
            return self.plans[signature]
        except KeyError:
            pass
        plan: Plan | None
        try:
            plan = Plan(runtime.cudnn, signature, runtime.where())
            if signature.benchmark:
                self._measure(plan, addresses, runtime)
        except runtime.cudnn.cudnnGraphNotSupportedError:
            plan = None
        self.plans[signature] = plan
        return plan

    def _measure(self, plan: Plan, addresses: dict[int, int], runtime: Runtime) -> None:
        """Let the plan execute the fastest of its candidates."""
        times = []
        for number in plan.candidates():
            plan.choose(number)
            self._execute(plan, addresses, runtime)  # warm
            run = lambda: self._execute(plan, addresses, runtime)  # noqa: E731
            times.append((runtime.milliseconds(run), number))
        if times:
            plan.choose(min(times)[1])

    def _execute(self, plan: Plan, addresses: dict[int, int], runtime: Runtime) -> None:
        _room, at = self.room(plan.workspace)
        plan.execute(addresses, at, runtime.handle())

    def _made(self, shape: Sizes, dtype: np.dtype, last: bool) -> Array:
        xp = self.layer.xp
        if not last:
            return xp.empty(shape, dtype)
        return xp.moveaxis(xp.empty((shape[0], *shape[2:], shape[1]), dtype), -1, 1)

    def _laid_out(self, a: Array, dtype: np.dtype, last: bool) -> Array:
        """`a` in a layout, and where plans may read it: at a multiple of 16 bytes."""
        xp = self.layer.xp
        a = a.astype(dtype, copy=False)
        moved = xp.moveaxis(a, 1, -1) if last else a
        if not moved.flags.c_contiguous or self.layer.address(moved) % ALIGNMENT:
            moved = moved.copy("C")
        return xp.moveaxis(moved, -1, 1) if last else moved

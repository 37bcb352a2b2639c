"""What the plugin host asks of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flambeau.plugin import KernelSet, hookimpl
from flambeau_native import __version__

if TYPE_CHECKING:
    from flambeau.plugin.plan import Plan


api_version = "1.0"


@hookimpl(tryfirst=True)
def flambeau_kernels(device_type: str) -> KernelSet | None:
    """The compiled kernels, before those of NumPy; none where the extension was not built."""
    if device_type != "cpu":
        return None
    from flambeau_native.extension import native

    if native is None:
        return None
    from flambeau_native.kernels import KERNELS, convolution
    from flambeau_native.kernels._casts import convert
    from flambeau_native.kernels.linalg import few, linear, matrices, pair
    from flambeau_numpy.extending import (
        follow,
        offer_casts,
        offer_indices,
        offer_plans,
        offer_pool,
        offer_products,
    )

    follow("flambeau-native", native.set_threads)
    names = "conv2d", "conv2d_input_grad", "conv2d_weight_grad"
    convolutions = {name: getattr(convolution, name) for name in names}
    offer_products(
        "flambeau-native",
        sgemm=native.sgemm,
        linear=linear if native.has_linear() else None,
        primitives=native.primitives,
        few=few,
        pair=pair,
        matrices=matrices if native.has_linear() else None,
        **(convolutions if native.has_linear() else {}),
    )
    offer_plans("flambeau-native", _compile_plan)
    offer_casts("flambeau-native", convert)
    if (pool := offer_pool(native.Pool, native.Lease)) is not None:
        native.share(pool)
    offer_indices("flambeau-native", native.lies_within)
    return KernelSet(f"flambeau-native {__version__}", KERNELS)


def _compile_plan(plan: Plan) -> Callable[..., tuple[Any, ...]] | None:
    from flambeau_native.fusion import compile_plan  # when there is a plan

    return compile_plan(plan)


@hookimpl
def flambeau_report(device_type: str) -> Mapping[str, str] | None:
    """Whether there are compiled kernels."""
    if device_type != "cpu":
        return None
    from flambeau_native.extension import native

    if native is None:
        return {"native": "not compiled: no compiler at installation"}
    return {"native": "compiled", "native threads": str(native.get_threads())}

"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn._registry import typename


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of `parameters` in one vector, in order.

    Raises:
        TypeError: the parameters are on different devices.

    >>> import flambeau as fb
    >>> fb.nn.utils.parameters_to_vector([fb.ones(1, 2), fb.zeros(1)])
    tensor([1., 1., 0.])
    """
    listed = list(parameters)
    _require_one_device(listed)
    return fb.cat([parameter.reshape(-1) for parameter in listed])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give `parameters` the elements of `vec`, in order, as their new data (shared, not copied).

    Raises:
        TypeError: `vec` is not a tensor, or the parameters are on different devices.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(1, 1)
    >>> fb.nn.utils.vector_to_parameters(fb.tensor([2.0, 3.0]), layer.parameters())
    >>> layer.bias.item()
    3.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    listed = list(parameters)
    _require_one_device(listed)
    start = 0
    for parameter in listed:
        end = start + parameter.numel()
        parameter.data = vec[start:end].reshape(parameter.shape).detach()
        start = end


def _require_one_device(parameters: list[Tensor]) -> None:
    for parameter in parameters:
        require_tensors("parameters", parameter=parameter)
    devices = {parameter.device for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported: "
            + ", ".join(sorted(map(str, devices)))
        )

"""Modules that change their tensors as `__future__` says, beside PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    for library in (fb, torch):
        library.__future__.set_overwrite_module_params_on_conversion(False)
        library.__future__.set_swap_module_params_on_conversion(False)


def told(library: Any, overwrite: bool, swap: bool) -> list[Any]:
    """What is another object, other memory or of another type after a conversion, and loading."""
    future, nn = library.__future__, library.nn
    future.set_overwrite_module_params_on_conversion(overwrite)
    future.set_swap_module_params_on_conversion(swap)
    found: list[Any] = [future.get_overwrite_module_params_on_conversion()]
    found.append(future.get_swap_module_params_on_conversion())
    net = nn.BatchNorm1d(2)
    net(library.ones(3, 2)).sum().backward()
    net.bias.requires_grad_(False)
    for dtype in (library.float64, library.float64, library.float16):
        weight, grad, mean, place = (
            net.weight,
            net.weight.grad,
            net.running_mean,
            net.weight.data_ptr(),
        )
        net.to(dtype)
        found += [net.weight is weight, net.weight.grad is grad, net.running_mean is mean]
        found += [str(t.dtype) for t in (weight, grad, net.weight, net.weight.grad)]
        found += [net.weight.data_ptr() == place, net.weight.requires_grad, net.bias.requires_grad]
        found += [
            net.weight.is_leaf,
            isinstance(net.weight, nn.Parameter),
            len(list(net.parameters())),
        ]
    for assign in (False, True):
        weight, mean, place = net.weight, net.running_mean, net.weight.data_ptr()
        state = {key: value.clone() for key, value in net.state_dict().items()}
        loaded = state["weight"].data_ptr()
        net.load_state_dict(state, assign=assign)
        found += [net.weight is weight, net.running_mean is mean, net.weight.grad is None]
        found += [net.weight.data_ptr() == place, net.weight.data_ptr() == loaded]
        found += [net.weight.requires_grad, net.bias.requires_grad]
    layer = nn.Linear(2, 1)
    layer.weight.grad = library.ones(1, 2).requires_grad_()
    layer.bias.grad = library.ones(1).requires_grad_()
    weight, bias = layer.weight, layer.bias
    layer._apply(lambda t: t.detach().to_sparse() if t.dim() == 2 else t.detach().double())
    if not swap:  # PyTorch swaps these too
        found += [layer.weight is weight, layer.bias is bias]
        found += [str(t.layout) for t in (weight, layer.weight, layer.weight.grad)]
        found += [layer.weight.grad.requires_grad, layer.bias.grad.requires_grad]
    moved = nn.Linear(2, 2)
    weight = moved.weight
    moved.to("meta")
    found += [moved.weight is weight, weight.is_meta, moved.weight.is_meta]
    return found


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("swap", [False, True])
def test_converted_modules_hold_what_pytorch_leaves_them(overwrite, swap):
    assert told(fb, overwrite, swap) == told(torch, overwrite, swap)


def loaded_by_classes(library: Any) -> list[Any]:
    class Doubling(library.Tensor):
        def module_load(self, other: Any, assign: bool = False) -> Any:
            return (other * 2).as_subclass(Doubling)

    class Itself(library.Tensor):
        def module_load(self, other: Any, assign: bool = False) -> Any:
            return other

    class Told(library.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func == library.Tensor.module_load:
                return args[1] + 5
            return super().__torch_function__(func, types, args, kwargs or {})

    library.__future__.set_swap_module_params_on_conversion(True)
    found: list[Any] = []
    for kind in (Doubling, Itself, Told):
        net = library.nn.Linear(2, 1)
        net.weight = library.nn.Parameter(library.zeros(1, 2).as_subclass(kind))
        weight = net.weight
        state = {"weight": library.ones(1, 2), "bias": library.ones(1)}
        try:
            net.load_state_dict(state)
        except RuntimeError as error:
            found.append(str(error))
        found += [type(net.weight).__name__, net.weight is weight, net.weight.tolist()]
        found += [net.weight.requires_grad, state["weight"].tolist()]
    return found


def test_a_class_says_what_it_becomes_when_it_is_loaded():
    ours, theirs = loaded_by_classes(fb), loaded_by_classes(torch)
    assert ours == theirs
    assert any("module_load returned one of self or other" in str(each) for each in ours)


def test_what_is_loaded_is_a_tensor() -> None:
    for assign in (False, True):
        with pytest.raises(TypeError, match="must be a Tensor, got str"):
            fb.ones(2).module_load("fro", assign=assign)

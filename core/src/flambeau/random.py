"""Seeding and saving the default generators of random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flambeau._random.generator import Generator, default_generator, default_generators
from flambeau._types.device import device as Device
from flambeau.absence import tell as _tell

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Generator:
    """Start the random numbers of all devices from `seed`; returns the CPU's default generator.

    The CPU's numbers are those of PyTorch for the same seed.  Negative seeds stand for ``seed +
    2**64``.

    Raises:
        ValueError: `seed` is outside [-2**63, 2**64), or text that is no number.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0)
    >>> fb.randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    try:
        number = int(seed)
    except OverflowError as error:
        raise ValueError(f"manual_seed(): argument 'seed' is not finite: {error}") from error
    return default_generators.manual_seed(number)


def seed() -> int:
    """Start the random numbers of all devices from a seed that cannot be foreseen, and return it.

    >>> import flambeau as fb
    >>> fb.seed() == fb.initial_seed()
    True
    """
    return default_generators.manual_seed(Generator().seed()).initial_seed()


def initial_seed() -> int:
    """The seed from which the CPU's default generator started.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(7)
    >>> fb.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator: 5056 bytes (uint8), in PyTorch's layout.

    >>> import flambeau as fb
    >>> fb.get_rng_state().shape
    torch.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the CPU's default generator from a state that `get_rng_state` returned.

    Raises:
        TypeError: `new_state` is no uint8 tensor on the CPU.
        RuntimeError: it is not contiguous, has the wrong size or holds no state.

    >>> import flambeau as fb
    >>> state = fb.get_rng_state()
    >>> a = fb.rand(3)
    >>> fb.set_rng_state(state)
    >>> bool((fb.rand(3) == a).all())
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[int | str | Device] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A block after which the default generators continue as if it had not drawn anything.

    Args:
        devices: accepted as PyTorch accepts it and not needed: saving a device costs nothing until
            it is used, so the generators of all devices are restored.
        enabled: False makes the block an ordinary one.
        device_type: accepted like `devices`; ``"meta"`` makes the block an ordinary one.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0)
    >>> with fb.random.fork_rng():
    ...     _ = fb.rand(100)
    >>> fb.rand(2)
    tensor([0.4963, 0.7682])
    """
    if not enabled or device_type == "meta":
        yield
        return
    saved = default_generators.snapshot()
    try:
        yield
    finally:
        default_generators.restore(saved)


_tell(__name__)

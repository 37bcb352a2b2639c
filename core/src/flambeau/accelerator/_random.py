"""The default generators of a device type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flambeau._random.generator import Generator, default_generators
from flambeau.accelerator._runtime import Runtime

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.hints import DeviceLike


class Random:
    """Seeds and states of a device type's default generators, one per device."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _generator(self, device: DeviceLike | None = None) -> Generator:
        return default_generators.of(self._runtime.device(self._runtime.index(device)))

    def _all(self) -> list[Generator]:
        return [self._generator(i) for i in range(self._runtime.device_count())]

    def manual_seed(self, seed: int) -> None:
        """Start the current device's random numbers from `seed`; nothing where there is none."""
        if self._runtime.found() is not None:
            self._generator().manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Start the random numbers of all devices from `seed`; nothing where there is none."""
        if self._runtime.found() is not None:
            for generator in self._all():
                generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Start the current device's numbers from a seed that cannot be foreseen."""
        if self._runtime.found() is not None:
            self._generator().seed()

    def seed_all(self) -> None:
        """Start all devices' numbers from one seed that cannot be foreseen."""
        if self._runtime.found() is not None:
            self.manual_seed_all(self._generator(0).seed())

    def initial_seed(self) -> int:
        """The seed of the current device.

        Raises:
            RuntimeError: there is no device.
        """
        return self._generator().initial_seed()

    def get_rng_state(self, device: DeviceLike | None = None) -> Tensor:
        """The state of a device's generator, as bytes on the CPU; by default the current one.

        Raises:
            RuntimeError: there is no device.
        """
        return self._generator(device).get_state()

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of all devices' generators."""
        return [generator.get_state() for generator in self._all()]

    def set_rng_state(self, new_state: Tensor, device: DeviceLike | None = None) -> None:
        """Continue a device's generator from a state of `get_rng_state`.

        Raises:
            RuntimeError: there is no device, or the state is none of its generator.
        """
        self._generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states: Iterable[Tensor]) -> None:
        """Continue all devices' generators, each from its state."""
        for i, state in enumerate(new_states):
            self.set_rng_state(state, i)

"""Generators of random numbers, and the default one of each device.

A `Generator` is a source of random bits (`BitEngine`), the seed it started from, and the normal
number that the Box-Muller transform left over.  The default engine of every device is MT19937,
used exactly as PyTorch's CPU generator uses it: equal seeds give equal numbers, and states travel
both ways.
"""

from __future__ import annotations

import os
import struct
from array import array
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._random.mt19937 import MT19937, WORDS, BitEngine
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as _dtype
from flambeau._types.device import device as Device
from flambeau.plugin.forks import make_lock

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

_DEFAULT_SEED = 67280421310721  # PyTorch's, of a generator that nobody seeded
_SEED_RANGE = range(-(1 << 63), 1 << 64)

# PyTorch's layout, padding included: the seed; words left in the block plus one; whether seeded;
# index of the next word; the words, 64 bits each; three doubles of which the second is the
# left-over normal, and whether there is one; the same for float32.
_LAYOUT = struct.Struct(f"<QiiQ{WORDS}Q3di4xf?3x")


_COUNTER_LAYOUT = struct.Struct("<QQ")  # of counter-based engines, also PyTorch's: seed, offset


class _State(NamedTuple):
    seed: int
    words: tuple[list[int], int] | int | None  # an offset, or None: as the seed left them
    next_normal: float | None
    next_normal_float32: float | None


class Generator:
    """A stream of random numbers on one device, started by a seed.

    Args:
        device: the device whose tensors it fills; the CPU by default.

    Attributes:
        device: where it lives.
        engine: its source of random bits, which kernels draw from.
        next_normal: the second number of the last Box-Muller pair, until it is used.
        lock: held by kernels that must not interleave with another thread's draws.

    Raises:
        RuntimeError: no backend serves the device, or the device has no values to draw.

    >>> import flambeau as fb
    >>> g = fb.Generator().manual_seed(0)
    >>> fb.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    >>> g.initial_seed()
    0
    """

    __slots__ = (
        "__weakref__",
        "_device",
        "_engine",
        "_next_normal_float32",
        "_seed",
        "lock",
        "next_normal",
    )

    def __init__(self, device: Device | str | int | None = None) -> None:
        where = Device("cpu" if device is None else device)
        if where.type == "meta":
            raise RuntimeError("Generator: device meta has no values, hence no random numbers")
        if where.type == "cpu":
            where = Device("cpu")
        else:
            where = bind(where).device
        self._device = where
        self._engine: BitEngine | None = None
        self.lock = make_lock()
        self._reset(_DEFAULT_SEED)

    def __repr__(self) -> str:
        return f"Generator(device={str(self._device)!r}, initial_seed={self._seed})"

    @property
    def device(self) -> Device:
        """Where the generator lives."""
        return self._device

    @property
    def engine(self) -> BitEngine:
        """The source of random bits: the backend's, or the core's MT19937 where it brings none."""
        if self._engine is None:
            index = self._device.index or 0
            engine = bind(self._device).backend.generator(index)
            with self.lock:
                if self._engine is None:
                    made: BitEngine = MT19937() if engine is None else engine
                    made.seed(self._seed)
                    self._engine = made
        return self._engine

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`; returns the generator itself.

        Negative seeds stand for ``seed + 2**64``.  Only the low 32 bits choose the stream.

        Raises:
            RuntimeError: `seed` is no integer.
            ValueError: `seed` is outside [-2**63, 2**64).
        """
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._reset(_checked_seed(int(seed)))
        return self

    def seed(self) -> int:
        """Start a stream that cannot be foreseen; returns its seed, which the system draws."""
        self._reset(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the stream started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as 5056 bytes (uint8, on the CPU) in the layout of PyTorch's CPU generator.

        That of a counter-based generator is 16 bytes, seed and offset, as of PyTorch's on CUDA.

        >>> import flambeau as fb
        >>> g = fb.Generator()
        >>> state = g.get_state()
        >>> a = fb.rand(3, generator=g)
        >>> bool((fb.rand(3, generator=g.set_state(state)) == a).all())
        True
        """
        be = bind("cpu")
        data = self.state_bytes()
        native = be.backend.from_host(data, (len(data),), _dtype.uint8, 0)
        return wrap(be, native, _dtype.uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned, here or in PyTorch; returns itself.

        Raises:
            TypeError: `new_state` is no uint8 tensor.  RuntimeError: it is not on the CPU, not
            contiguous, has the wrong size or holds no state.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not _dtype.uint8 or new_state.device.type != "cpu":
            raise TypeError(
                "RNG state must be a torch.ByteTensor on the CPU, got "
                f"{new_state.dtype} on {new_state.device}"
            )
        if not new_state.is_contiguous():
            raise RuntimeError("RNG state must be contiguous; call .contiguous() on it first")
        self.set_state_bytes(bytes(new_state.reshape(-1).tolist()))
        return self

    def state_bytes(self) -> bytes:
        """What `get_state` returns, as bytes."""
        with self.lock:
            if (offset := self._offset()) is not None:
                return _COUNTER_LAYOUT.pack(self._seed, offset)
            words, position = self.engine.get_words()
            spare, spare32 = self.next_normal, self._next_normal_float32
            return _LAYOUT.pack(
                self._seed,
                WORDS + 1 - position if position else 1,
                1,
                position,
                *words,
                0.0,
                0.0 if spare is None else spare,
                0.0,
                spare is not None,
                0.0 if spare32 is None else spare32,
                spare32 is not None,
            )

    def set_state_bytes(self, state: bytes) -> None:
        """Continue from what `state_bytes` returned.

        Raises:
            RuntimeError: the size is wrong, or the bytes are no state.
        """
        if self._offset() is not None:
            if len(state) != _COUNTER_LAYOUT.size:
                raise RuntimeError(
                    f"RNG state of device {self._device} is {_COUNTER_LAYOUT.size} bytes (seed and "
                    f"offset), got {len(state)}"
                )
            seed, offset = _COUNTER_LAYOUT.unpack(state)
            self._restore(_State(seed, offset, None, None))
            return
        if len(state) != _LAYOUT.size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_LAYOUT.size} "
                f"but found the input RNG state size to be {len(state)}"
            )
        seed, left, seeded, following, *rest = _LAYOUT.unpack(state)
        words = [word & 0xFFFFFFFF for word in rest[:WORDS]]
        _, spare, _, has_spare, spare32, has_spare32 = rest[WORDS:]
        if seeded != 1 or not 0 < left <= WORDS or following > WORDS:
            raise RuntimeError(
                f"Invalid mt19937 state: seeded={seeded} (must be 1), "
                f"left={left} (1 to {WORDS}), next={following} (0 to {WORDS})"
            )
        # With one word left to count down, the next draw makes a new block wherever `next` points.
        position = (WORDS if following else 0) if left == 1 else following
        self._restore(
            _State(
                seed,
                (words, position),
                spare if has_spare else None,
                spare32 if has_spare32 else None,
            )
        )

    def clone_state(self) -> Generator:
        """A new generator of the same device that continues from this one's state."""
        copy = Generator(self._device)
        copy._restore(self._saved())
        return copy

    def get_offset(self) -> int:
        """How far a counter-based generator has come.

        Raises:
            RuntimeError: the generator is not counter-based; the CPU's is not.
        """
        if (offset := self._offset()) is None:
            raise self._no_offset()
        return offset

    def set_offset(self, offset: int) -> Generator:
        """Let a counter-based generator continue from an offset; returns itself.

        Raises:
            RuntimeError: the generator is not counter-based, or `offset` is no multiple of 4 below
            2**64.
        """
        if self._offset() is None:
            raise self._no_offset()
        if not 0 <= offset < 1 << 64 or offset % 4:
            raise RuntimeError(f"offset must be a multiple of 4 and not negative, got {offset}")
        self.engine.offset = offset  # type: ignore[attr-defined]
        return self

    def _offset(self) -> int | None:
        """The offset of a counter-based engine, None of another."""
        return getattr(self.engine, "offset", None)

    def place(self) -> tuple[list[int], int] | int:
        """Where the engine is in its stream, for `return_to`."""
        offset = self._offset()
        return self.engine.get_words() if offset is None else offset

    def return_to(self, place: tuple[list[int], int] | int) -> None:
        """Let the engine go on from a place that `place` returned.

        Raises:
            RuntimeError: it returned no such place.
        """
        if (self._offset() is None) == isinstance(place, int):
            raise self._no_place(place)
        if isinstance(place, int):
            if not 0 <= place < 1 << 64:
                raise self._no_place(place)
            self.engine.offset = place  # type: ignore[attr-defined]
            return
        try:
            words, position = place
            words, position = list(array("I", words)), index(position)
        except (TypeError, ValueError, OverflowError):
            raise self._no_place(place) from None
        # Engines read words by the position: beyond them is memory of others.
        if len(words) != WORDS or not 0 <= position <= WORDS:
            raise self._no_place(place)
        self.engine.set_words(words, position)

    def keep(self, normal: float | None) -> None:
        """Let the second number of a pair of normals wait for the next draw.

        Not so of a counter-based engine: seed and offset are the whole state of its generator.
        """
        if not (normal is None or isinstance(normal, int | float)):
            raise TypeError(f"keep(): normal must be a number, not {type(normal).__name__}")
        if isinstance(normal, int) and not -(2**1023) < normal < 2**1023:
            raise ValueError("keep(): normal is no number of float64")
        self.next_normal = None if self._offset() is not None else normal

    def _no_place(self, place: object) -> RuntimeError:
        return RuntimeError(
            f"return_to(): a {type(place).__name__} is no place in the stream of a generator on "
            f"{self._device}, as place() returns them"
        )

    def _no_offset(self) -> RuntimeError:
        return RuntimeError(f"{self._device.type.upper()} Generator does not use offset")

    def __reduce__(self) -> tuple[object, ...]:
        return Generator, (self._device,), (self._seed, None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Tensor]) -> None:
        self.set_state(state[2])

    def _reset(self, seed: int) -> None:
        with self.lock:
            self._seed = seed
            self.next_normal: float | None = None
            self._next_normal_float32: float | None = None
            if self._engine is not None:
                self._engine.seed(seed)

    def _saved(self) -> _State:
        with self.lock:
            words: tuple[list[int], int] | int | None = None
            if self._engine is not None:
                words = self.place()
            return _State(self._seed, words, self.next_normal, self._next_normal_float32)

    def _restore(self, state: _State) -> None:
        with self.lock:
            self._reset(state.seed)
            if state.words is not None:
                self.return_to(state.words)
            self.next_normal = state.next_normal
            self._next_normal_float32 = state.next_normal_float32


def _checked_seed(seed: int) -> int:
    if seed not in _SEED_RANGE:
        raise ValueError(
            f"Overflow when unpacking long long: seed {seed} is outside "
            "[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff]"
        )
    return seed % (1 << 64)


class DefaultGenerators:
    """The generators that random functions use when they are given none: one per device.

    A device's generator is made when it is first used, from the seed that was set last.
    """

    def __init__(self) -> None:
        self.cpu = Generator()
        self._seed = self.cpu.seed()
        self._others: dict[Device, Generator] = {}
        self._lock = make_lock()

    def of(self, device: Device) -> Generator:
        """The default generator of `device`, the CPU's where nothing is drawn, on ``meta``."""
        if device.type in ("cpu", "meta"):
            return self.cpu
        if (found := self._others.get(device)) is None:
            with self._lock:
                found = self._others.get(device)
                if found is None:
                    found = self._others[device] = Generator(device).manual_seed(self._seed)
        return found

    def manual_seed(self, seed: int) -> Generator:
        """Seed all of them, also those not made yet; returns the CPU's."""
        self.cpu.manual_seed(seed)
        with self._lock:
            self._seed = seed
            for generator in self._others.values():
                generator.manual_seed(seed)
        return self.cpu

    def snapshot(self) -> object:
        """Everything that `restore` needs to continue from here."""
        with self._lock:
            others = {device: (g, g._saved()) for device, g in self._others.items()}
            return self.cpu._saved(), self._seed, others

    def restore(self, snapshot: object) -> None:
        """Continue from a `snapshot`; generators made since are forgotten."""
        cpu, seed, others = snapshot  # type: ignore[misc]
        self.cpu._restore(cpu)
        with self._lock:
            self._seed = seed
            self._others = {device: g for device, (g, _) in others.items()}
            for generator, state in others.values():
                generator._restore(state)


default_generators = DefaultGenerators()
default_generator = default_generators.cpu


def generator_for(device: Device, generator: Generator | None) -> Generator:
    """The generator that fills a tensor on `device`: the one given, or the device's default.

    Raises:
        TypeError: it is no generator.
        RuntimeError: the given generator lives on another type of device.
    """
    if generator is None:
        return default_generator if device.type == "cpu" else default_generators.of(device)
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    if generator.device.type != device.type:
        raise RuntimeError(
            f"Expected a '{device.type}' device type for generator "
            f"but found '{generator.device.type}'"
        )
    return generator

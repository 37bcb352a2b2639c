"""The runtime of one device type: how arrays come from host memory and go back to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._types.dtype import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flambeau._types.dtype import dtype as DType

HostBytes = bytes | bytearray | memoryview
Scalar = bool | int | float | complex


@dataclass(frozen=True)
class MemoryStatistics:
    """Bytes of one device: in living arrays, held by the pool, and the largest figures of both.

    Attributes:
        allocated: bytes of the living arrays that the pool gave out.
        reserved: these and what the pool keeps for later ones.
        max_allocated: the largest `allocated` so far.
        max_reserved: the largest `reserved` so far.
        limit: bytes beyond which the pool keeps nothing; 0 where no bound is known.
        hits: how often the pool had memory for an array.
        misses: how often it had to ask the system.
    """

    allocated: int = 0
    reserved: int = 0
    max_allocated: int = 0
    max_reserved: int = 0
    limit: int = 0
    hits: int = 0
    misses: int = 0


class Backend(ABC):
    """Base class of a device type's runtime; a backend package makes one object of its subclass.

    A backend moves bytes and describes arrays. Computing is the business of kernels (`KernelSet`),
    and shapes, gradients and versions are the core's. *Array* below always means the backend's own
    native array, an instance of `array`. Every backend defines `from_host`, `to_host` and
    `dtype_of`. The defaults of `scalar`, `item` and `tolist` go through host memory: override what
    the library does faster.

    Attributes:
        device_type: the name that users write, such as ``"cpu"``.
        array: class of native arrays; instances have ``shape``, a tuple of ints.
        strided: whether views alias memory natively and in-place kernels exist: True promises
            `strides`, `offset`, `data_ptr`, `owns`, `as_strided` and the view kernels. Otherwise
            arrays are taken to be immutable and the core keeps strides itself.
        indexed: whether devices are told apart by an index, so that the bare name means the
            current one (``cuda`` is ``cuda:0``). False for a type with a single device, whose
            tensors show the bare name, as those of ``cpu`` do.
        error: what kernels raise for arguments they cannot take; the core turns it into its own
            errors.
        stand_in: class of what stands for an array that `deferred` ops put off; without one there
            are no plans of a device that has such ops.

    >>> from flambeau.plugin import Backend, float32
    >>> class Bytes(bytes):
    ...     shape: tuple[int, ...] = ()
    >>> class Toy(Backend):
    ...     device_type, array = "toy", Bytes
    ...     def from_host(self, data, shape, dtype, index):
    ...         made = Bytes(data); made.shape = shape; return made
    ...     def to_host(self, array): return bytes(array)
    ...     def dtype_of(self, array): return float32
    >>> Toy().item(Toy().scalar(1.5, float32))
    1.5
    """

    device_type: str
    array: type
    strided: bool = False
    indexed: bool = True
    error: tuple[type[Exception], ...] = (ValueError, TypeError, IndexError)
    stand_in: type | None = None

    @abstractmethod
    def from_host(self, data: HostBytes, shape: tuple[int, ...], dtype: DType, index: int) -> Any:
        """A new array on device `index` from C-contiguous little-endian bytes, which are copied."""

    @abstractmethod
    def to_host(self, array: Any) -> HostBytes:
        """The elements of `array` as C-contiguous little-endian bytes."""

    @abstractmethod
    def dtype_of(self, array: Any) -> DType:
        """The flambeau dtype of `array`."""

    def device_count(self) -> int:
        """How many devices of this type there are; 0 when the hardware is absent."""
        return 1

    def current_device(self) -> int:
        """The index that a device name without index stands for."""
        return 0

    def index_of(self, array: Any) -> int:
        """The index of the device that holds `array`."""
        return self.current_device()

    def synchronize(self, index: int) -> None:
        """Wait until device `index` has finished what was asked of it."""
        return None

    def generator(self, index: int) -> Any:
        """A source of random bits for device `index`; None for the core's MT19937.

        Called for each `flambeau.Generator` of the device, which keeps the source to itself.  It
        has ``seed(n)``, which starts the stream of `n`, and one of two kinds of state: an attribute
        ``offset``, an int that can be set, of a counter-based source, which seed and offset
        describe; or ``random_bits(n)``, `n` words of 32 bits, with ``get_words()`` and
        ``set_words(words, position)``, the state of an MT19937, however it is computed.  The
        decompositions of random ops call ``random_bits``: without it the backend has kernels for
        them.
        """
        return None

    def memory_statistics(self, index: int) -> MemoryStatistics:
        """The figures of a device's memory pool."""
        return MemoryStatistics()

    def reset_peak(self, index: int, *, allocated: bool, reserved: bool) -> None:
        """Let the largest figures start again from the present ones."""
        return None

    def empty_cache(self) -> None:
        """Give memory that no array uses back to the devices."""
        return None

    def caches_memory(self, enabled: bool | None = None) -> bool:
        """Whether memory of dead arrays is kept for later ones; `enabled` switches it first."""
        return False

    def get_num_threads(self) -> int:
        """How many threads kernels use at most."""
        return 1

    def set_num_threads(self, count: int) -> None:
        """Let kernels, those of all providers, use at most `count` threads."""
        return None

    def compile(self, op: str, decomposition: Callable[..., Any]) -> Callable[..., Any] | None:
        """A faster form of a composite that has no kernel, or None to run it op by op.

        Args:
            op: the canonical name.
            decomposition: the composite in terms of the device's kernels; it takes arrays and
                plain values as a kernel of `op` would.

        Called for every such composite when the device is first used, so it must be quick; the
        work belongs into the first call. `decomposition` may be run on stand-ins for arrays
        (tracers) if `dtype_of`, `to_array` and the kernels take them and they have ``shape``.
        Arrays made by `from_host` and `scalar` meanwhile are kept and must be real. A
        decomposition may look at values, or raise errors of the user's making; either must work
        as before. It must not be asked for its gradient: that is the core's.
        """
        return None

    def deferred(
        self, index: int, ops: Mapping[str, Callable[..., Any]]
    ) -> tuple[Mapping[str, Callable[..., Any]], Callable[[Sequence[Any]], Sequence[Any]]] | None:
        """What gradient formulas call in place of the ops of a device, or None: the ops.

        Args:
            index: the device.
            ops: by canonical name.

        Returns:
            Ops by canonical name, whose results may be stand-ins for arrays that are not computed
            yet, and a function that turns what a formula returned (arrays, such stand-ins, None)
            into arrays.  A stand-in has ``shape`` and `dtype_of` and `to_array` take it; only
            these ops ever meet one.

        A backend that generates code thereby sees a formula as a whole.
        """
        return None

    def lies_within(self, index: Any, size: int) -> bool | None:
        """Whether all elements of an int64 array are in [0, size); None where the core shall look.

        A backend has it that finds out by one call, and at once.
        """
        return None

    def compile_plan(self, plan: Any) -> Callable[..., tuple[Any, ...]] | None:
        """A function that runs a whole plan, or None to make its calls one by one.

        Args:
            plan: the calls of a captured function (`flambeau.plans.Plan`), in order.

        Returns:
            A function of the arrays of ``plan.inputs`` and the values of ``plan.numbers``, which
            returns the arrays of ``plan.outputs``.  It does what the calls do: the same values,
            the same writes into arrays, the same random draws.  ``plan.in_parts(compiler)``
            makes one of compiled parts, between which draws and checks stay calls.
        """
        return None

    def to_array(self, value: Any) -> Any:
        """What a kernel returned in place of an array (a NumPy scalar, say) as an array."""
        return value

    def scalar(self, value: Scalar, dtype: DType) -> Any:
        """A 0-d array holding `value`."""
        return self.from_host(pack([value], dtype), (), dtype, self.current_device())

    def item(self, array: Any) -> Scalar:
        """The only element of `array` as a Python number.

        Raises:
            ValueError: `array` does not have exactly one element.
        """
        if (count := prod(array.shape)) != 1:
            raise ValueError(f"item() needs one element, got {count} (shape {tuple(array.shape)})")
        return unpack(bytes(self.to_host(array)), self.dtype_of(array))[0]

    def tolist(self, array: Any) -> Any:
        """The elements of `array` as nested lists of Python numbers; a number if it is 0-d."""
        return _nested(unpack(bytes(self.to_host(array)), self.dtype_of(array)), tuple(array.shape))

    def strides(self, array: Any) -> tuple[int, ...]:
        """Steps between neighbours along each dimension, in elements."""
        raise self._not_strided("strides")

    def is_contiguous(self, array: Any) -> bool:
        """Whether the elements lie in row-major order without gaps: by the strides, here.

        Those of dimensions of size 1 do not matter, and none where there are no elements.
        """
        step = 1
        for size, stride in zip(reversed(array.shape), reversed(self.strides(array)), strict=True):
            if size != 1 and stride != step:
                return 0 in array.shape
            step *= size
        return True

    def offset(self, array: Any, root: Any) -> int:
        """Where the first element of `array` lies in `root`, in elements from its first."""
        raise self._not_strided("offset")

    def data_ptr(self, array: Any) -> int:
        """The address of the first element."""
        raise self._not_strided("data_ptr")

    def owns(self, array: Any) -> bool:
        """Whether no other array shares the memory of `array`."""
        raise self._not_strided("owns")

    def as_strided(
        self, root: Any, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
    ) -> Any:
        """A view of the memory of `root`; `stride` and `offset` in elements."""
        raise self._not_strided("as_strided")

    def reinterpret(self, root: Any, dtype: DType) -> Any:
        """The memory of `root`, from first to last element, as a vector of `dtype`: an alias.

        Bytes at the end that fill no element are left out.  Optional: without it ``x.view(dtype)``
        and the bytes of storages are not available.
        """
        raise self._not_strided("reinterpret")

    def _not_strided(self, method: str) -> NotImplementedError:
        kind = type(self).__name__
        if self.strided:
            return NotImplementedError(f"{kind} says strided = True and must define {method}()")
        return NotImplementedError(
            f"{kind}.{method}: arrays of device {self.device_type!r} have no strides"
        )


STRIDED_METHODS = ("strides", "offset", "data_ptr", "owns", "as_strided")


def _nested(flat: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = prod(shape[1:])
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]

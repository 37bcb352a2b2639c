"""The runtime of device ``jax``: immutable arrays, computed asynchronously by XLA.

Importing this module switches on JAX's 64-bit types (``jax_enable_x64``), since integers of tensor
programs are int64; JAX has the switch only for the whole process.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from flambeau import plugin

jax.config.update("jax_enable_x64", True)

TO_JAX = {d: jnp.dtype(d.name) for d in plugin.dtypes}
FROM_JAX = {theirs: ours for ours, theirs in TO_JAX.items()}

_PLAIN = (bool, int, float, complex, str, slice, plugin.dtype, type(None))


class JaxBackend(plugin.Backend):
    """JAX arrays on the default device of JAX: a CPU, a GPU, a TPU."""

    device_type = "jax"
    array = type(jnp.zeros(()))
    indexed = False

    def from_host(
        self, data: Any, shape: tuple[int, ...], dtype: plugin.dtype, index: int
    ) -> jax.Array:
        """An array with a copy of little-endian bytes."""
        kind = TO_JAX[dtype]
        host = np.frombuffer(data, np.uint8).copy().view(kind).reshape(shape)
        # A constant of a function being traced would belong to that function; the core keeps them.
        with jax.ensure_compile_time_eval():
            return jax.device_put(host)

    def to_host(self, array: jax.Array) -> bytes:
        """The elements as little-endian bytes; waits until they are there."""
        return np.asarray(array).tobytes()

    def dtype_of(self, array: jax.Array) -> plugin.dtype:
        """The flambeau dtype of an array, or of a tracer."""
        return FROM_JAX[array.dtype]

    def to_array(self, value: Any) -> Any:
        """A tracer stays one: inside `compile` the core's tensors hold tracers."""
        return value if isinstance(value, jax.core.Tracer) else jnp.asarray(value)

    def synchronize(self, index: int) -> None:
        """Wait for everything that was started; a device runs its programs in order."""
        (jnp.zeros(()) + 1).block_until_ready()
        jax.effects_barrier()

    def compile(self, op: str, decomposition: Callable[..., Any]) -> Callable[..., Any]:
        """One XLA program per composite and static arguments; shapes are JAX's own business.

        What cannot be traced, because it looks at values or draws random numbers, runs op by op.
        """
        programs: dict[str, Callable[..., Any] | None] = {}

        def run(*args: Any) -> Any:
            static = [_outline(a) for a in args]
            if any(outline is _OPAQUE for outline in static):
                return decomposition(*args)
            places = [i for i, outline in enumerate(static) if outline is _ARRAYS]
            key = repr(static)  # tells 1 from True and 1.0, and takes slices
            if key in programs:
                program = programs[key]
                if program is None:
                    return decomposition(*args)
                return program(*[args[i] for i in places])
            program = jax.jit(_with_arrays(decomposition, args, places))
            try:
                result = program(*[args[i] for i in places])
            except Exception:
                # Either it cannot be traced, or the arguments are wrong: then this raises as well.
                result, program = decomposition(*args), None
            programs[key] = program
            return result

        return run

    def compile_plan(self, plan: Any) -> Callable[..., tuple[Any, ...]] | None:
        """One XLA program of all calls that neither draw random numbers nor check values."""
        return plan.in_parts(_as_one_program)


def _as_one_program(part: Any, calls: Callable[..., Any]) -> Callable[..., Any]:
    """The calls of a part of a plan as one program; one by one where they look at values."""
    program: Callable[..., Any] | None = None

    def run(*args: Any) -> Any:
        nonlocal program
        if program is not None:
            return program(*args)
        told = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else io.StringIO()
        print(f"XLA compiles {len(part.steps)} calls ...", end="", file=told, flush=True)
        start = time.perf_counter()
        program = jax.jit(calls)
        try:
            return program(*args)
        except Exception:
            program = calls  # as in `compile`
            return calls(*args)
        finally:
            print(f" {time.perf_counter() - start:.1f} s", file=told)

    return run


_ARRAYS, _OPAQUE = "arrays", object()


def _outline(argument: Any) -> Any:
    """What a program depends on: plain values by themselves, arrays only through JAX."""
    if isinstance(argument, jax.Array):
        return _ARRAYS
    if isinstance(argument, (tuple, list)):
        inner = [_outline(a) for a in argument]
        if any(o is _OPAQUE for o in inner):
            return _OPAQUE
        if any(o is _ARRAYS for o in inner):
            plain = all(a is None or isinstance(a, jax.Array) for a in argument)
            return _ARRAYS if plain else _OPAQUE
        return tuple(inner)
    if isinstance(argument, str) or not isinstance(argument, _PLAIN):
        return repr(argument) if isinstance(argument, str) else _OPAQUE
    return argument


def _with_arrays(
    function: Callable[..., Any], args: tuple[Any, ...], places: list[int]
) -> Callable[..., Any]:
    """`function` of the arrays at `places`; the other arguments are fixed."""
    fixed = [None if i in places else a for i, a in enumerate(args)]

    def program(*arrays: Any) -> Any:
        full = list(fixed)
        for i, a in zip(places, arrays, strict=True):
            full[i] = a
        return function(*full)

    return program

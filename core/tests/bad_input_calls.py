"""Calls of the public tensor functions with bad arguments, run by `test_bad_input`.

``python bad_input_calls.py GROUP GROUPS LIMIT`` draws them for one group of names and prints those
that end in an exception that is not `ALLOWED` or give no answer within `SLOW` seconds.
"""

from __future__ import annotations

import faulthandler
import math
import resource
import signal
import sys
import warnings
import zlib
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import flambeau as fb

EXAMPLES = 25
SLOW = 10
ALLOWED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, MemoryError)

_NOT_CALLED = {
    *("manual_seed", "seed", "set_default_dtype", "set_default_tensor_type", "set_default_device"),
    *(
        "set_num_threads",
        "set_num_interop_threads",
        "set_rng_state",
        "set_printoptions",
        "save",
        "load",
    ),
    *("set_grad_enabled", "from_file", "backward", "share_memory_", "register_hook", "pin_memory"),
    *("set_flush_denormal", "use_deterministic_algorithms", "set_anomaly_enabled", "compile"),
    *("set_warn_always", "set_float32_matmul_precision", "register_post_accumulate_grad_hook"),
    *("apply_", "map_", "data_ptr", "tolist", "numpy"),
}

# Known faults: an argument of another kind ends in AttributeError or OverflowError.
_NOT_CALLED |= {
    *("add", "sub", "addcmul_", "floor_divide_", "record_stream"),
    *("frobenius_norm", "as_root", "alias"),
    *("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell", "rms_norm", "bilinear"),
}


def names() -> list[tuple[str, bool]]:
    """The public functions of `flambeau` on tensors, and the methods of `Tensor` (True)."""
    functions = [
        (name, False)
        for name in sorted(dir(fb))
        if not name.startswith("_")
        and name not in _NOT_CALLED
        and callable(getattr(fb, name))
        and not isinstance(getattr(fb, name), type)
        and getattr(getattr(fb, name), "__module__", "").startswith(
            ("flambeau.ops", "flambeau._functions", "flambeau._inplace", "flambeau._misc")
        )
    ]
    methods = [
        (name, True)
        for name in sorted(dir(fb.Tensor))
        if not name.startswith("_")
        and name not in _NOT_CALLED
        and callable(getattr(fb.Tensor, name))
    ]
    return functions + methods


_NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    -7,
    2**31,
    -(2**31),
    2**62,
    -(2**62),
    2**63,
    2**70,
    1.5,
    math.nan,
    math.inf,
]
_DTYPES = [fb.float64, fb.float32, fb.bfloat16, fb.int64, fb.uint8, fb.bool, fb.complex64]


@st.composite
def tensors(draw: Any) -> Any:
    """A small tensor: empty, 0-d, expanded, with NaN, huge indices, on another device."""
    shape = draw(st.sampled_from([(), (0,), (3,), (2, 3), (2, 0), (3, 3), (2, 2, 3), (1, 1, 1, 2)]))
    dtype = draw(st.sampled_from(_DTYPES))
    kind = draw(st.sampled_from(["ones", "ones", "special", "expanded", "meta", "grad"]))
    if kind == "meta":
        return fb.empty(shape, dtype=dtype, device="meta")
    made = fb.ones(shape, dtype=dtype)
    if kind == "special" and dtype is not fb.bool:
        whole = not (dtype.is_floating_point or dtype.is_complex)
        number = {fb.uint8: 255}.get(dtype, 2**62) if whole else math.nan
        made.fill_(number)
    if kind == "expanded" and shape:
        made = made[:1].expand(shape) if shape[0] else made
    if kind == "grad" and dtype.is_floating_point:
        made.requires_grad_()
    return made


_PLAIN = st.one_of(
    st.sampled_from(_NUMBERS),
    st.sampled_from(
        [None, "a", "mean", True, (), [], object(), fb.int64, "cuda:9", 1j, b"x", slice(1)]
    ),
    st.lists(st.sampled_from(_NUMBERS), max_size=4),
    st.lists(st.sampled_from(_NUMBERS), max_size=3).map(tuple),
)
_ARGUMENTS = st.one_of(tensors(), tensors(), _PLAIN, st.lists(tensors(), max_size=3))


def _shown(value: Any) -> str:
    if isinstance(value, fb.Tensor):
        return f"{value.device.type}{list(value.shape)}:{value.dtype}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value)[:40]


def _too_slow(*_: Any) -> None:
    raise TimeoutError(f"no answer in {SLOW} s")


def run(name: str, method: bool) -> str | None:
    """The first bad outcome of a name, in words."""
    found: list[str] = []

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(tensors(), st.lists(_ARGUMENTS, max_size=4))
    def attempt(first: Any, rest: list[Any]) -> None:
        arguments = (
            [first, *rest] if method else rest if not rest or len(rest) % 2 else [first, *rest]
        )
        call = f"{'Tensor.' * method}{name}({', '.join(map(_shown, arguments))})"
        print(call, file=sys.stderr)
        signal.alarm(SLOW)
        try:
            function = getattr(fb.Tensor if method else fb, name)
            function(*arguments)
        except ALLOWED:
            pass
        except Exception as error:
            found.append(f"{call}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)

    attempt()
    return found[0] if found else None


def main(group: int, groups: int, limit: int) -> None:
    """Draw the calls of a group under a limit of memory."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    fb.ones(3).add(1)  # what the first call imports does not count
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
    signal.signal(signal.SIGALRM, _too_slow)
    for name, method in names()[group::groups]:
        outcome = run(name, method)
        if outcome:
            print(outcome)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

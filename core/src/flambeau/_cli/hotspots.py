"""Which decomposed ops of a program take the time: what a backend's author should write next."""

from __future__ import annotations

import runpy
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flambeau._cli.overview import activate_quietly, columns
from flambeau.plugin.host import PluginHost

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend


def hotspots(host: PluginHost, device_type: str, program: Sequence[str]) -> str:
    """Run a program and rank the ops that `device_type` decomposed by the time spent in them.

    What the program does on other devices does not count. The device finishes each op before the
    next begins, so that the time of an asynchronous one is that of its work. The time of an op
    includes that of the ops it consists of, so lines do not add up where one decomposed op contains
    another.

    Args:
        host: whose kernels count as native.
        device_type: the device that the program uses.
        program: the path of a script, and its arguments.

    Raises:
        RuntimeError: the device cannot be used, or the program cannot be read, ended with a status,
            or ran nothing on the device.
    """
    import flambeau
    from flambeau.autograd import _recorder

    if not Path(program[0]).is_file():
        raise RuntimeError(f"cannot run {program[0]}: there is no such file")
    active = activate_quietly(host, device_type)
    flambeau.device(device_type)
    flambeau.empty(0, device=device_type)  # a device first used inside the block is not seen
    before = sys.argv, sys.path
    sys.argv = list(program)
    if not sys.flags.safe_path:
        sys.path = [str(Path(program[0]).resolve().parent), *sys.path]
    measured = _Stopwatch(device_type)
    _recorder.listen(measured)
    try:
        runpy.run_path(program[0], run_name="__main__")
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"{program[0]} ended with status {left.code}") from left
    finally:
        _recorder.ignore(measured)
        sys.argv, sys.path = before
    ops = host.op_table()
    if not measured.calls:
        raise RuntimeError(
            f"{program[0]} ran no op on {device_type!r}, so there is nothing to rank; "
            "does it take the device as an argument?"
        )
    slow = [n for n in measured.calls if n not in active.kernels and n in ops]
    slow = [n for n in slow if ops[n].tier == "composite"]
    if not slow:
        return f"{program[0]}: every op that ran has a kernel of its own on {device_type!r}"
    rows = [("op", "calls", "time", "share")]
    for name in sorted(slow, key=lambda name: -measured.seconds[name]):
        spent = measured.seconds[name]
        share = f"{100 * spent / measured.total:.1f} %" if measured.total else "-"
        rows.append((name, str(measured.calls[name]), f"{1000 * spent:.1f} ms", share))
    return "\n".join([f"decomposed on {device_type!r}, slowest first:", *columns(rows)])


class _Stopwatch:
    """A listener that adds up the time of each op of one device type."""

    def __init__(self, device_type: str) -> None:
        self.calls: defaultdict[str, int] = defaultdict(int)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.total = 0.0
        self._device_type = device_type
        self._depth: defaultdict[int, int] = defaultdict(int)

    def begin(self, name: str, scope: int, sequence: int, args: tuple[Any, ...], be: Any) -> Any:
        if be is None or be.device.type != self._device_type:  # a node, or another device's op
            return None
        self._depth[threading.get_ident()] += 1
        self._finish(be)
        return name, be, perf_counter()

    def end(self, token: Any) -> None:
        if token is None:
            return
        name, be, start = token
        self._finish(be)
        spent = perf_counter() - start
        self.calls[name] += 1
        self.seconds[name] += spent
        thread = threading.get_ident()
        self._depth[thread] -= 1
        if not self._depth[thread]:
            self.total += spent

    @staticmethod
    def _finish(be: BoundBackend) -> None:
        be.backend.synchronize(be.device.index or 0)

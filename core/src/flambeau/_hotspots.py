"""Which decomposed ops of a program take the time: what a backend's author should write next."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from flambeau._overview import activate_quietly, columns
from flambeau.plugin.host import PluginHost


def hotspots(host: PluginHost, device_type: str, program: Sequence[str]) -> str:
    """Run a program and rank the ops that `device_type` decomposed by the time spent in them.

    The time of an op includes that of the ops it consists of, so lines do not add up where one
    decomposed op contains another.

    Args:
        host: whose kernels count as native.
        device_type: the device that the program uses.
        program: the path of a script, and its arguments.

    Raises:
        RuntimeError: the device cannot be used, or the program ran nothing on any device.
    """
    import flambeau
    from flambeau.autograd.profiler import profile

    active = activate_quietly(host, device_type)
    flambeau.device(device_type)
    flambeau.empty(0, device=device_type)  # a device first used inside the block is not seen
    before = sys.argv, sys.path
    sys.argv = list(program)
    sys.path = [str(Path(program[0]).resolve().parent), *sys.path]
    measured = profile()
    try:
        with measured:
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"{program[0]} ended with status {left.code}") from left
    finally:
        sys.argv, sys.path = before
    ops = host.op_table()
    events = [e for e in measured.key_averages() if e.key in ops]
    if not events:
        raise RuntimeError(f"{program[0]} ran no op, so there is nothing to rank")
    slow = sorted(
        (e for e in events if e.key not in active.kernels and ops[e.key].tier == "composite"),
        key=lambda e: -e.cpu_time_total,
    )
    total = sum(e.self_cpu_time_total for e in events)
    if not slow:
        return f"{program[0]}: every op that ran has a kernel of its own on {device_type!r}"
    rows = [("op", "calls", "time", "share")]
    for e in slow:
        share = f"{100 * e.cpu_time_total / total:.1f} %" if total else "-"
        rows.append((e.key, str(e.count), f"{e.cpu_time_total / 1000:.1f} ms", share))
    return "\n".join([f"decomposed on {device_type!r}, slowest first:", *columns(rows)])

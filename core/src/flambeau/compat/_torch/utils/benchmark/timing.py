"""A timer of statements, and what it measured."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from typing import Any

import flambeau as fb

__all__ = ["Language", "Measurement", "Timer"]

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def unit_of(seconds: float) -> tuple[float, str]:
    """The unit in which a time is told, and its name."""
    return next((u for u in reversed(_UNITS) if seconds >= u[0]), _UNITS[0])


class Language(enum.Enum):
    """What a `Timer`'s statement is written in."""

    PYTHON = 0
    CPP = 1


class Measurement:
    """Times of a statement.

    Attributes:
        raw_times: seconds of each repetition.
        number_per_run: how often the statement ran in each.
        times: seconds of one run of it, by repetition.
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: Any = None,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec or {}, metadata
        self.times = [time / number_per_run for time in raw_times]

    @property
    def median(self) -> float:
        """The time in the middle, seconds."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean time, seconds."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles, seconds."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def title(self) -> str:
        """What was measured."""
        spec = self.task_spec
        parts = (spec.get("label"), spec.get("sub_label"), spec.get("description"))
        return ": ".join(filter(None, parts)) or str(spec.get("stmt", ""))

    def __repr__(self) -> str:
        scale, unit = unit_of(self.median)
        lines = [f"<flambeau {type(self).__name__}>", self.title]
        if len(self.times) > 1:
            lines += [f"  Median: {self.median / scale:.2f} {unit}"]
            lines += [f"  IQR:    {self.iqr / scale:.2f} {unit}"]
            lines += [f"  {len(self.times)} measurements, {self.number_per_run} runs per "
                      f"measurement, {self.task_spec.get('num_threads', 1)} thread"]  # fmt: skip
        else:
            lines += [f"  {self.mean / scale:.2f} {unit}"]
            runs = "1 measurement, " + f"{self.number_per_run} runs"
            lines += [f"  {runs}, {self.task_spec.get('num_threads', 1)} thread"]
        return "\n".join(lines)


class Timer:
    """A statement and how it is timed: with the threads it is given, and accelerators waited for.

    Args:
        stmt: the statement.
        setup: what runs once before.
        global_setup: accepted for programs in C++, which are not timed.
        timer: the clock.
        globals: names that the statement may use.
        label: what it is, in tables.
        sub_label: which row.
        description: which column.
        env: which environment.
        num_threads: that it may use.

    >>> from flambeau.compat import torch_alias
    >>> with torch_alias():
    ...     from torch.utils.benchmark import Timer
    >>> Timer("x + 1", globals={"x": 1}).timeit(10).median > 0
    True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Any = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError(
                "Timer(language='cpp'): statements in C++ are not compiled here, for flambeau has "
                "no C++ tensors; write the statement in Python"
            )
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(each).strip() for each in (stmt, setup))
        self._timer = timeit.Timer(
            stmt, setup, timer=timer, globals={"torch": fb, **(globals or {})}
        )
        self._spec = {
            "stmt": stmt, "setup": setup, "label": label, "sub_label": sub_label,
            "description": description, "env": env, "num_threads": num_threads,
        }  # fmt: skip

    def _run(self, number: int) -> float:
        accelerator = fb.accelerator.current_accelerator()
        seconds = self._timer.timeit(number)
        if accelerator is not None:
            fb.accelerator.synchronize()
        return seconds

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One repetition of so many runs."""
        threads = fb.get_num_threads()
        fb.set_num_threads(int(str(self._spec["num_threads"])))
        try:
            self._run(max(number // 100, 2))
            return self._measured(number, [self._run(number)])
        finally:
            fb.set_num_threads(threads)

    def repeat(self, repeat: int = -1, number: int = -1) -> list[float]:
        """Not supported, as in PyTorch: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Repetitions of as many runs as take a thousandth of `min_run_time`, for that long."""
        threads = fb.get_num_threads()
        fb.set_num_threads(int(str(self._spec["num_threads"])))
        try:
            number = 1
            while (taken := self._run(number)) < min_run_time / 1000:
                number *= 10
            times, total = [], 0.0
            while total < min_run_time:
                taken = self._run(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
            return self._measured(number, times)
        finally:
            fb.set_num_threads(threads)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the quartiles lie within `threshold` of the median."""
        found = self.blocked_autorange(callback, min_run_time)
        while found.iqr > threshold * found.median and sum(found.raw_times) < max_run_time:
            more = self.blocked_autorange(callback, min_run_time)
            if more.number_per_run == found.number_per_run:
                more = self._measured(more.number_per_run, found.raw_times + more.raw_times)
            found = more
        return found

"""Faults of arguments that only the device sees: found beside the work, raised at the next wait.

To look at indices before they are used, the host would have to wait for the device, which it cannot
at all while a graph is recorded.  So a kernel copies them, puts something harmless in the place of
what is wrong, and writes the number of the complaint to page-locked memory.  Probabilities and the
like are looked at and not copied, since no kernel that gets them reads elsewhere for what they are.
The host reads the complaint whenever it has waited for the device, the first one if there are
several; an exception there leaves a device that works.  With ``CUDA_LAUNCH_BLOCKING=1`` each launch
waits, and the exception comes at once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from flambeau.plugin import make_lock
from flambeau_cupy.device.launch import blocks_for
from flambeau_cupy.dtypes import FLOATS, INT64

if TYPE_CHECKING:
    from flambeau_cupy.device.array_module import Array, ArrayModule

Complaint = tuple[type[Exception], str]
ZERO: Complaint = RuntimeError, "ZeroDivisionError: integer division or modulo by zero"
ANY: Complaint = IndexError, "index {index} is out of range"
MOST = 4095
"""Complaints that are told apart."""


class Faults:
    """What devices of one layer complain about.

    Args:
        layer: the array module; it has something to launch on.
    """

    def __init__(self, layer: ArrayModule) -> None:
        self._layer, self._lock = layer, make_lock()
        # A number, and for each complaint what it is about: made when something is first looked at.
        self._words: np.ndarray | None = None
        self._numbers: dict[Complaint, int] = {ANY: 1}
        self._complaints: list[Complaint] = [ANY]

    def index(
        self, index: Array, size: int, wrap: bool, allowed: int | None, complaint: Complaint
    ) -> Array | None:
        """A copy of int64 indices whose elements are in [0, size), or `allowed`.

        Args:
            index: the indices.
            size: of what they index; None is returned if that is 0, as nothing is in range.
            wrap: whether negative numbers count from the end.
            allowed: a number that stays as it is, whatever it is.
            complaint: what to raise where one is out of range; ``{index}`` in its text stands for
                that one.
        """
        if not size:
            return None
        out = self._layer.xp.empty(index.shape, INT64)
        given = out, self._layer.dense(index), np.int64(out.size), np.int64(size), np.int32(wrap)
        exempt = np.int32(allowed is not None), np.int64(allowed or 0)
        self.launch(INT64, "checked_index", out.size, *given, *exempt, complaint=complaint)
        return out

    def values(self, values: Array, low: float, high: float, complaint: Complaint) -> bool:
        """Look whether all elements are in [low, high]; False where no kernel reads the dtype."""
        kind = values.dtype
        if kind not in FLOATS:
            if kind.kind not in "biu":
                return False
            values = values.astype(INT64, copy=False)
        bounds = np.float64(low), np.float64(high)
        given = self._layer.dense(values), np.int64(values.size), *bounds
        self.launch(values.dtype, "check_values", values.size, *given, complaint=complaint)
        return True

    def divisor(self, b: Array) -> Array:
        """A copy of integers, none of them 0."""
        wide = self._layer.dense(b.astype(INT64, copy=False))
        out = self._layer.xp.empty(b.shape, INT64)
        self.launch(INT64, "checked_divisor", b.size, out, wide, np.int64(b.size), complaint=ZERO)
        return out.astype(b.dtype, copy=False)

    def look(self) -> None:
        """Raise what was found since the last look."""
        if self._words is not None and (number := int(self._words[0])):
            self._words[0] = 0
            kind, text = self._complaints[number - 1]
            raise kind(text.replace("{index}", str(self._words[number])))

    def launch(
        self, kind: np.dtype, kernel: str, n: int, *given: Array, complaint: Complaint
    ) -> None:
        """Launch a kernel over `n` elements that may complain: its last arguments say how."""
        launch = self._layer.launch
        assert launch is not None
        if n:
            number = np.int64(self._number(complaint))
            if self._words is None:
                with self._lock:
                    if self._words is None:
                        self._words = self._layer.shared_words(MOST + 1)
            address = np.uintp(self._words.__array_interface__["data"][0])
            launch(kind, kernel, *blocks_for(n), *given, address, number)
            if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
                self.look()

    def _number(self, complaint: Complaint) -> int:
        found = self._numbers.get(complaint)
        if found is None:
            with self._lock:
                if len(self._complaints) >= MOST:
                    return self._numbers[ANY]
                if (found := self._numbers.get(complaint)) is None:
                    self._complaints.append(complaint)
                    found = self._numbers[complaint] = len(self._complaints)
        return found

"""What a device's memory pool says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.accelerator._runtime import Runtime
from flambeau.plugin.accelerator import amount
from flambeau.plugin.backend import MemoryStatistics

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


class Memory:
    """The memory of one device type; where there is no device, nothing is used and 0 is true."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _statistics(self, device: DeviceLike | None) -> MemoryStatistics:
        backend = self._runtime.present()
        if backend is None:
            return MemoryStatistics()
        return backend.memory_statistics(self._runtime.index(device))

    def _reset(
        self, device: DeviceLike | None, *, allocated: bool = False, reserved: bool = False
    ) -> None:
        if (backend := self._runtime.present()) is not None:
            index = self._runtime.index(device)
            backend.reset_peak(index, allocated=allocated, reserved=reserved)

    def empty_cache(self) -> None:
        """Give memory that no tensor uses back, for other programs; does not make more for ours."""
        if (backend := self._runtime.present()) is not None:
            backend.empty_cache()

    def memory_allocated(self, device: DeviceLike | None = None) -> int:
        """Bytes of living tensors."""
        return self._statistics(device).allocated

    def max_memory_allocated(self, device: DeviceLike | None = None) -> int:
        """The most bytes of living tensors since the start or `reset_max_memory_allocated`."""
        return self._statistics(device).max_allocated

    def reset_max_memory_allocated(self, device: DeviceLike | None = None) -> None:
        """Start `max_memory_allocated` again from what is allocated now."""
        self._reset(device, allocated=True)

    def memory_reserved(self, device: DeviceLike | None = None) -> int:
        """Bytes that the pool holds, used and unused."""
        return self._statistics(device).reserved

    def max_memory_reserved(self, device: DeviceLike | None = None) -> int:
        """The most bytes that the pool held since the start or `reset_max_memory_cached`."""
        return self._statistics(device).max_reserved

    def memory_cached(self, device: DeviceLike | None = None) -> int:
        """The former name of `memory_reserved`."""
        return self.memory_reserved(device)

    def max_memory_cached(self, device: DeviceLike | None = None) -> int:
        """The former name of `max_memory_reserved`."""
        return self.max_memory_reserved(device)

    def reset_max_memory_cached(self, device: DeviceLike | None = None) -> None:
        """Start `max_memory_reserved` again from what is held now."""
        self._reset(device, reserved=True)

    def reset_peak_memory_stats(self, device: DeviceLike | None = None) -> None:
        """Start both largest figures again."""
        self._reset(device, allocated=True, reserved=True)

    def memory_stats(self, device: DeviceLike | None = None) -> dict[str, int]:
        """The figures by PyTorch's names, then the bound of the pool and how often it served."""
        found = self._statistics(device)
        return {
            "allocated_bytes.all.current": found.allocated,
            "allocated_bytes.all.peak": found.max_allocated,
            "reserved_bytes.all.current": found.reserved,
            "reserved_bytes.all.peak": found.max_reserved,
            "limit_bytes": found.limit,
            "hits": found.hits,
            "misses": found.misses,
        }

    def mem_get_info(self, device: DeviceLike | None = None) -> tuple[int, int]:
        """Free and total bytes of a device, whoever uses them.

        Raises:
            RuntimeError: there is no device.
        """
        backend = self._runtime.needed()
        return backend.memory_info(self._runtime.index(device))

    def memory_summary(self, device: DeviceLike | None = None, abbreviated: bool = False) -> str:
        """The figures as a table; not `abbreviated`, also those of the whole device."""
        found, backend = self._statistics(device), self._runtime.found()
        rows: list[tuple[str, int, int | None]] = [
            ("in tensors", found.allocated, found.max_allocated),
            ("held by the pool", found.reserved, found.max_reserved),
            ("held and unused", found.reserved - found.allocated, None),
        ]
        lines = [f"{'':18}{'now':>14}{'most':>14}"]
        if not abbreviated:
            if found.limit:
                rows.append(("bound of the pool", found.limit, None))
            if backend is not None:
                index = self._runtime.index(device)
                free, total = backend.memory_info(index)
                rows += [("free on the device", free, None), ("of it in all", total, None)]
                where = f"{self._runtime.device_type}:{index}"
                lines.insert(0, f"{where} {backend.properties(index).name}")
        for name, now, most in rows:
            last = "" if most is None else amount(most)
            lines.append(f"{name:18}{amount(now):>14}{last:>14}".rstrip())
        if not abbreviated and (asked := found.hits + found.misses):
            lines.append(f"{found.hits} of {asked} requests served by what the pool held")
        return "\n".join(lines)

"""A table of measurements."""

from __future__ import annotations

from collections.abc import Iterable

from flambeau.compat._torch.utils.benchmark.timing import Measurement, unit_of

__all__ = ["Compare"]


class Compare:
    """Measurements in a table: rows by `sub_label`, columns by `description`."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add more."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Accepted: three are told."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted: there is one colour."""

    def highlight_warnings(self) -> None:
        """Accepted."""

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        if not self._results:
            return ""
        scale, unit = unit_of(min(each.median for each in self._results))
        specs = [each.task_spec for each in self._results]
        columns = list(dict.fromkeys(str(spec.get("description") or "") for spec in specs))
        rows = list(dict.fromkeys(str(s.get("sub_label") or s.get("stmt") or "") for s in specs))
        cells = {
            (str(s.get("sub_label") or s.get("stmt") or ""), str(s.get("description") or "")):
            f"{each.median / scale:.3g}"
            for s, each in zip(specs, self._results, strict=True)
        }  # fmt: skip
        table = [["", *columns]]
        table += [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
        widths = [max(len(line[i]) for line in table) for i in range(len(columns) + 1)]
        lines = [
            " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in table
        ]
        title = next((str(spec["label"]) for spec in specs if spec.get("label")), "times")
        return "\n".join([f"[{title}]", *lines, f"Times are in {unit}."])

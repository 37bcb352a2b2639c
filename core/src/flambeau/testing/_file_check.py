"""`FileCheck`: whether a text has certain parts, in order."""

from __future__ import annotations

import re


class FileCheck:
    """Expectations of a text, such as a printed graph, which `run` compares in order.

    >>> import flambeau as fb
    >>> graph = fb.jit.script(fb.nn.Sequential(fb.nn.Linear(2, 1), fb.nn.ReLU())).inlined_graph
    >>> _ = fb.testing.FileCheck().check("aten::linear").check("aten::relu").run(str(graph))
    """

    def __init__(self) -> None:
        self._expected: list[tuple[str, str, int]] = []

    def _add(self, kind: str, text: str, count: int = 0) -> FileCheck:
        self._expected.append((kind, str(text), count))
        return self

    def check(self, text: str) -> FileCheck:
        """The text comes after what was found before."""
        return self._add("check", text)

    def check_not(self, text: str) -> FileCheck:
        """The text is not between what was found before and what is found next."""
        return self._add("not", text)

    def check_next(self, text: str) -> FileCheck:
        """The text is on the next line."""
        return self._add("next", text)

    def check_same(self, text: str) -> FileCheck:
        """The text is on the same line."""
        return self._add("same", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes so often; with `exactly`, not once more."""
        self._add("count", text, count)
        return self._add("not", text) if exactly else self

    def check_dag(self, text: str) -> FileCheck:
        """The text comes after what was found before; neighbouring ones in any order."""
        return self._add("dag", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text is marked by a line of carets below it."""
        return self._add("highlighted", text)

    def check_regex(self, text: str) -> FileCheck:
        """Something that matches comes after what was found before."""
        return self._add("regex", text)

    def run(self, test_file: object, *more: object) -> FileCheck:
        """Compare.

        Args:
            test_file: the text, or what prints it; or expectations as comments
                (``# CHECK: text``), if a text follows.

        Raises:
            RuntimeError: a part is missing, or is there and should not be; says which.
        """
        if more:
            self._read(str(test_file))
            test_file = more[0]
        text = str(test_file)
        at, barred = 0, []
        group: int | None = None
        for kind, wanted, count in self._expected:
            if kind == "not":
                barred.append(wanted)
                continue
            start = at
            if kind == "dag":
                group = at if group is None else group
                place = self._found(text, wanted, group, kind)
                at = max(at, place + len(wanted))
            else:
                group = None
                for _ in range(count if kind == "count" else 1):
                    place, end = self._place(kind, text, wanted, at)
                    start_of_part = place
                    at = end
                    self._bar(text, barred, start, start_of_part)
                    barred = [] if kind != "count" else barred
                    start = at
            if kind == "dag":
                self._bar(text, barred, start, at)
            barred = []
        self._bar(text, barred, at, len(text))
        return self

    def _place(self, kind: str, text: str, wanted: str, at: int) -> tuple[int, int]:
        if kind == "regex":
            match = re.compile(wanted).search(text, at)
            if match is None:
                raise RuntimeError(f'Expected to find regex "{wanted}" but did not find it\n{text}')
            return match.start(), match.end()
        if kind == "highlighted":
            return self._highlighted(text, wanted, at)
        place = self._found(text, wanted, at, kind)
        lines = text.count("\n", at, place)
        if (kind == "next" and lines != 1) or (kind == "same" and lines):
            raise RuntimeError(
                f'Expected to find "{wanted}" on the {"next" if kind == "next" else "same"} line, '
                f"found it {lines} lines below\n{text}"
            )
        return place, place + len(wanted)

    def _highlighted(self, text: str, wanted: str, at: int) -> tuple[int, int]:
        place = self._found(text, wanted, at, "highlighted")
        line_start = text.rfind("\n", 0, place) + 1
        line_end = text.find("\n", place)
        marks = text[line_end + 1 : text.find("\n", line_end + 1)] if line_end >= 0 else ""
        column = place - line_start
        if "~" * len(wanted) != marks[column : column + len(wanted)]:
            raise RuntimeError(f'Expected to find "{wanted}" highlighted but it is not.\n{text}')
        return place, line_end

    def _found(self, text: str, wanted: str, at: int, kind: str) -> int:
        place = text.find(wanted, at)
        if place < 0:
            raise RuntimeError(f'Expected to find "{wanted}" but did not find it\n{text[at:]}')
        return place

    def _bar(self, text: str, barred: list[str], start: int, end: int) -> None:
        for each in barred:
            if text.find(each, start, end) >= 0:
                raise RuntimeError(f'Expected to not find "{each}" but found it\n{text}')

    def _read(self, source: str) -> None:
        words = {"": "check", "-NEXT": "next", "-SAME": "same", "-NOT": "not", "-DAG": "dag"}
        for match in re.finditer(r"#\s*CHECK(-[A-Z]+)?(-\d+)?:\s?(.*)", source):
            name = match[1] or ""
            if name.startswith("-COUNT"):
                number = int((match[2] or "-1")[1:])
                self._add("count", match[3].strip(), number)
            elif name in words:
                self._add(words[name], match[3].strip())
            else:
                raise RuntimeError(f"unknown expectation CHECK{name}")

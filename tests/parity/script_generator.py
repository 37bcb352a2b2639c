"""Random small programs of the language of scripts, well typed, with an end.

A program is the source of a helper and of a function; `inputs` are calls of it. Numbers stay small,
indices are mostly in range, and what raises in Python (an index, a division by zero, an assertion)
may happen: then it has to raise in each library.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

PARAMETERS = {
    "x": "Tensor",
    "y": "Tensor",
    "n": "int",
    "m": "int",
    "s": "float",
    "b": "bool",
    "t": "str",
    "l": "List[int]",
    "o": "Optional[int]",
    "d": "Dict[str, int]",
}
HEAD = ", ".join(f"{name}: {kind}" for name, kind in PARAMETERS.items())
KINDS = [
    *("Tensor", "Tensor", "int", "int", "int", "float", "bool", "str", "List[int]", "List[float]"),
    *("List[Tensor]", "Dict[str, int]", "Tuple[int, float]", "Optional[int]"),
]


class Program:
    """The source of a program, drawn by the numbers of a generator."""

    def __init__(self, numbers: random.Random) -> None:
        self.numbers = numbers
        self.lines: list[str] = []
        self.count = 0
        self.fuel = 0
        self.loops = 0

    def source(self) -> str:
        """Both functions: the second calls the first."""
        self.helped = False
        self._function("g", {"x": "Tensor", "n": "int", "s": "float"}, "float", 4)
        self.helped = True
        self._function("f", PARAMETERS, "", 12)
        return "\n".join(self.lines) + "\n"

    def _function(self, name: str, given: dict[str, str], returns: str, fuel: int) -> None:
        head = ", ".join(f"{each}: {kind}" for each, kind in given.items())
        self.lines.append(f"def {name}({head})" + (f" -> {returns}:" if returns else ":"))
        self.fuel = fuel
        scope = dict(given)
        self.returns = returns
        self._block(scope, 1, in_loop=False)
        if returns:
            self.lines.append(f"    return {self.value(scope, returns, 2)}")
        else:
            kept = [each for each, kind in scope.items() if kind != "Optional[int]"]
            self.lines.append(
                f"    return ({', '.join(kept)}, {', '.join(self._optionals(scope))})"
            )

    def _optionals(self, scope: dict[str, str]) -> list[str]:
        names = [each for each, kind in scope.items() if kind == "Optional[int]"]
        return [f"-1 if {each} is None else {each}" for each in names] or ["0"]

    def _block(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        before = len(self.lines)
        for _ in range(self.numbers.randint(1, 3) if depth > 1 else self.fuel):
            if self.fuel <= 0:
                break
            self.fuel -= 1
            self._statement(scope, depth, in_loop)
        if len(self.lines) == before:
            self._line(depth, "pass")

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _statement(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        forms: list[tuple[int, Callable[..., None]]] = [
            (8, self._assign),
            (6, self._augmented),
            (7, self._write),
            *([(5, self._list_change), (2, self._dict_change)] if "l" in scope else []),
            (1, self._assert),
            (1, self._unpack),
        ]
        if depth < 4:
            forms += [(5, self._if), (4, self._for), (2, self._while), (1, self._with)]
            forms += [(1, self._optional)]
        if in_loop:
            forms += [(2, self._leave)]
        if depth > 1 and self.returns:
            forms += [(1, self._return)]
        form = self.numbers.choices([f for _, f in forms], [w for w, _ in forms])[0]
        form(scope, depth, in_loop)

    def _assign(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        kind = self.numbers.choice(KINDS)
        known = [each for each, have in scope.items() if have == kind]
        text = self.value(scope, kind, 3)
        # What a branch or a loop first defines is not there after it.
        if known and (depth > 1 or self.numbers.random() < 0.5):
            self._line(depth, f"{self.numbers.choice(known)} = {text}")
            return
        name = self._fresh()
        note = f": {kind}" if "[" in kind else ""
        self._line(depth, f"{name}{note} = {text}")
        scope[name] = kind

    def _fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _augmented(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        name = self.numbers.choice(list(scope))
        kind = scope[name]
        if kind == "int":
            sign = self.numbers.choice(["+", "-", "*"])
            self._line(depth, f"{name} {sign}= {self.small(scope)}")
        elif kind == "float":
            self._line(depth, f"{name} {self.numbers.choice('+-*')}= {self.value(scope, kind, 1)}")
        elif kind == "Tensor":
            sign = self.numbers.choice(["+", "-", "*"])
            self._line(depth, f"{name} {sign}= {self.small(scope)}")
        elif kind in ("List[int]", "List[float]"):
            self._line(depth, f"{name} += {self.value(scope, kind, 1)}[:4]")
        elif kind == "str":
            self._line(depth, f"{name} = {name}[-3:] + {self.value(scope, 'str', 1)}")

    def _tensor(self, scope: dict[str, str]) -> str:
        return self.numbers.choice([each for each, kind in scope.items() if kind == "Tensor"])

    def _write(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        name, other = self._tensor(scope), self._tensor(scope)
        n = self.small(scope)
        view = self._fresh()
        forms = [
            f"{name}[{self.index(scope)}] = {n}",
            f"{name}[1:3] = {self.value(scope, 'float', 1)}",
            f"{name}[{self.index(scope)}:] += {n}",
            f"{name}[::2] *= {n}",
            f"{name}.add_({n})",
            f"{name}.mul_({other}.clone())",
            f"{name}[{other} > {n}] = {n}",
            f"{view} = {name}[{self.index(scope)}:]",
            f"{view} = {name}.view(-1)",
            f"{view} = {name}.detach()",
            f"{view} = {name} + 0",
            f"{name} = {other}",
        ]
        text = self.numbers.choice(forms)
        self._line(depth, text)
        if text.startswith(f"{view} "):
            scope[view] = "Tensor"
            if self.numbers.random() < 0.6:
                self._line(depth, f"{view}.add_({n})")

    def _list_change(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        names = [each for each, kind in scope.items() if kind == "List[int]"]
        name, n = self.numbers.choice(names), self.small(scope)
        other = self.numbers.choice(names)
        forms = [
            f"{name}.append({n})",
            f"{name}.insert({self.index(scope)}, {n})",
            f"{name}.extend({self.value(scope, 'List[int]', 1)}[:4])",
            f"{name}.reverse()",
            f"{name}.sort()",
            f"{name}.sort(reverse=True)",
            f"{name}[{self.index(scope)}] = {n}",
            f"{name}.pop({self.index(scope)})",
            f"{name}.pop()",
            f"{name} = {other}",
            f"{name} = {other}.copy()",
            f"{name}.remove({name}[{self.index(scope)}])",
            f"del {name}[{self.index(scope)}]",
            f"{name}.clear()",
        ]
        text = self.numbers.choice(forms)
        if "extend" in text or "insert" in text or "append" in text:
            self._line(depth, f"if len({name}) < 12:")
            depth += 1
        self._line(depth, text)

    def _dict_change(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        names = [each for each, kind in scope.items() if kind == "Dict[str, int]"]
        if not names:
            return
        name, key = self.numbers.choice(names), self.value(scope, "str", 1)
        forms = [
            f"{name}['k'] = {self.small(scope)}",
            f"{name}[({key})[:2]] = {self.small(scope)}",
            f"{name}.pop('a')",
            f"{name}.update({{'u': {self.small(scope)}}})",
            f"{name}.setdefault('w', {self.small(scope)})",
            f"del {name}['a']",
        ]
        self._line(depth, self.numbers.choice(forms))

    def _assert(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        self._line(depth, f"assert {self.value(scope, 'bool', 1)} or n < 3, 'no'")

    def _unpack(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        a, b = self._fresh(), self._fresh()
        forms = [
            (f"{a}, {b} = {self.value(scope, 'int', 1)}, {self.value(scope, 'float', 1)}", "float"),
            (
                f"{a}, {b} = divmod({self.small(scope)}, {self.numbers.choice(['n', '2', '-3'])})",
                "int",
            ),
            (f"{a}, {b} = [{self.small(scope)}, {self.small(scope)}]", "int"),
            (f"{a}, {b} = n, m\n{'    ' * depth}n, m = m, n", "int"),
        ]
        if "m" not in scope:
            forms.pop()
        text, second = self.numbers.choice(forms)
        self._line(depth, text)
        scope[a], scope[b] = "int", second

    def _if(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        self._line(depth, f"if {self.value(scope, 'bool', 2)}:")
        self._block(dict(scope), depth + 1, in_loop)
        if self.numbers.random() < 0.3:
            self._line(depth, f"elif {self.value(scope, 'bool', 1)}:")
            self._block(dict(scope), depth + 1, in_loop)
        if self.numbers.random() < 0.5:
            self._line(depth, "else:")
            self._block(dict(scope), depth + 1, in_loop)

    def _optional(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        names = [each for each, kind in scope.items() if kind == "Optional[int]"]
        if not names:
            return
        name = self.numbers.choice(names)
        test = self.numbers.choice(
            [f"{name} is not None", f"{name} is not None and {name} > {self.small(scope)}"]
        )
        self._line(depth, f"if {test}:")
        self._block({**scope, name: "int?"}, depth + 1, in_loop)
        self._line(depth + 1, f"n = n + {name}")

    def _for(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        i, j = self._fresh(), self._fresh()
        inner = dict(scope)
        lists = [each for each, kind in scope.items() if kind == "List[int]"] or ["[3, 1]"]
        name = self.numbers.choice(lists)
        steps = self.numbers.choice(["", ", -1", ", -2", ", 2", ", 3"])
        stop = self.numbers.choice(["0", "n", "5", "-4", f"len({name})"])
        start = self.numbers.choice(["n", "4", "-3", "0"])
        forms = [
            (f"for {i} in range({self.numbers.choice(['3', 'n', f'len({name})'])}):", {i: "int"}),
            (f"for {i} in range({start}, {stop}{steps}):", {i: "int"}),
            (f"for {i} in {name}[:4]:", {i: "int"}),
            (f"for {i}, {j} in enumerate({name}[1:4]):", {i: "int", j: "int"}),
            (f"for {i}, {j} in zip({name}[:3], range(2)):", {i: "int", j: "int"}),
            (f"for {i} in ({self.small(scope)}, {self.small(scope)}):", {i: "int"}),
            (f"for {i} in {self._tensor(scope)}[:2].clone():", {i: "Tensor"}),
            (f"for {i}, {j} in enumerate('ab', 3):", {i: "int", j: "str"}),
        ]
        head, names = self.numbers.choice(forms)
        self._line(depth, head)
        inner.update(names)
        self.loops += 1
        self._block(inner, depth + 1, in_loop="(" not in head or "range" in head or "zip" in head)
        self.loops -= 1

    def _while(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        i = self._fresh()
        self._line(depth, f"{i} = 0")
        scope[i] = "counter"
        self._line(
            depth, f"while {i} < {self.numbers.randint(1, 4)} and {self.value(scope, 'bool', 1)}:"
        )
        self._line(depth + 1, f"{i} += 1")
        self._block({**scope, i: "counter"}, depth + 1, in_loop=True)

    def _with(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        self._line(depth, "with torch.no_grad():")
        self._block(dict(scope), depth + 1, in_loop=False)

    def _leave(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        word = self.numbers.choice(["break", "continue"])
        self._line(depth, f"if {self.value(scope, 'bool', 1)}:")
        self._line(depth + 1, word)

    def _return(self, scope: dict[str, str], depth: int, in_loop: bool) -> None:
        self._line(depth, f"if {self.value(scope, 'bool', 1)}:")
        self._line(depth + 1, f"return {self.value(scope, self.returns, 1)}")

    def small(self, scope: dict[str, str]) -> str:
        """An integer that is not large."""
        names = [each for each, kind in scope.items() if kind in ("int", "counter", "int?")]
        if names and self.numbers.random() < 0.5:
            return f"({self.numbers.choice(names)} % 7)"
        return str(self.numbers.randint(-3, 5))

    def index(self, scope: dict[str, str]) -> str:
        """An index that is mostly in range."""
        return self.numbers.choice(["0", "1", "-1", "2", "-2", f"{self.small(scope)} % 3"])

    def value(self, scope: dict[str, str], kind: str, depth: int) -> str:
        """An expression of a type."""
        names = [each for each, have in scope.items() if have == kind]
        if names and (depth <= 0 or self.numbers.random() < 0.3):
            return self.numbers.choice(names)
        forms = self._forms(scope, kind, depth)
        if self.numbers.random() < 0.08 and depth > 0:
            test, other = self.value(scope, "bool", 0), self.value(scope, kind, depth - 1)
            return f"({self.numbers.choice(forms)} if {test} else {other})"
        return self.numbers.choice(forms)

    def _forms(self, scope: dict[str, str], kind: str, depth: int) -> list[str]:
        n, pick = self.small(scope), self.numbers.choice
        if depth <= 0:
            return {
                "int": [n],
                "float": ["0.5", "-1.25", "2.0", f"float({n})"],
                "bool": ["True", f"{n} > 1"],
                "str": ["'a'", "'bc'", "'%d'", "''"],
                "Tensor": [self._tensor(scope)],
                "List[int]": ["[1, 2, 3]", f"[{n}]"],
                "List[float]": ["[0.5]"],
                "List[Tensor]": [f"[{self._tensor(scope)}]"],
                "Dict[str, int]": ["{'a': 1}"],
                "Tuple[int, float]": ["(1, 0.5)"],
                "Optional[int]": ["None", n],
            }[kind]

        def of(kind: str) -> str:
            return self.value(scope, kind, depth - 1)

        if kind == "int":
            a, b = of("int"), of("int")
            return [
                f"({a} {pick('+-')} {b})",
                f"({a} % 11 * ({b} % 11))",
                f"({a} // {pick(['2', '-2', '3', '-3', n])})",
                f"({a} % {pick(['2', '-2', '3', '-5', n])})",
                f"(-({a}))",
                f"abs({a})",
                f"min({a}, {b})",
                f"max({a}, {b})",
                f"len({of('List[int]')})",
                f"len({of('str')})",
                f"({of('List[int]')})[{self.index(scope)}]",
                f"int({'s' if 's' in scope else '0.5'})",
                f"int({of('bool')})",
                f"({a} {pick(['&', '|', '^'])} {b})",
                f"({of('Tuple[int, float]')})[0]",
                f"{self._tensor(scope)}.size({pick(['0', '-1'])})",
                f"int({self._tensor(scope)}.sum().item()) % 100",
                f"sum([{a} % 9, {b}, {n}])",
                f"({a} % 8 << {self.numbers.randint(0, 3)})",
                f"({a} >> 1)",
                f"{of('Dict[str, int]')}.get('a', {b})",
                f"ord({of('str')}[0])",
                f"({of('str')}).find('a')",
            ]
        if kind == "float":
            a, b = of("float"), of("float")
            # Not within int(): PyTorch computes what is converted twice.
            helped = [f"g({of('Tensor')}, {n}, {a})"] if self.helped and depth == 3 else []
            return [
                *helped,
                f"({a} {pick('+-*')} {b})",
                f"({a} / {pick(['2', '4.0', n])})",
                f"({of('int')} / {pick(['2', '-4', n])})",
                f"({a} // {pick(['2.0', '-2.0', '0.5', b])})",
                f"({a} % {pick(['2.0', '-2.0', '3', b])})",
                f"(-{a})",
                f"abs({a})",
                f"float({of('int')})",
                f"({of('Tuple[int, float]')})[1]",
                f"float({self._tensor(scope)}.sum())",
                f"max({a}, {b})",
                f"min({a}, {b})",
                f"({of('int')} * {a})",
                f"({n}) ** 2 * 1.0",
                f"math.floor({a}) * 0.5",
                f"math.ceil({a}) * 0.5",
                f"({of('List[float]')} + [1.0])[{pick(['0', '-1'])}]",
                f"float({of('bool')})",
            ]
        if kind == "bool":
            a, b = of("int"), of("int")
            return [
                f"({a} {pick(['<', '<=', '>', '>=', '==', '!='])} {b})",
                f"({of('float')} {pick(['<', '>='])} {of('float')})",
                f"({of('bool')} and {of('bool')})",
                f"({of('bool')} or {of('bool')})",
                f"(not {of('bool')})",
                f"({n} in {of('List[int]')})",
                f"('a' in {of('Dict[str, int]')})",
                f"({of('str')} == {of('str')})",
                f"bool({a})",
                f"bool(({self._tensor(scope)} > {n}).any())",
                f"({n} < {a} < {b})",
                f"({of('List[int]')} == {of('List[int]')})",
                f"({of('str')} < {of('str')})",
                f"({of('str')}).startswith('a')",
                f"any([{of('bool')}, False])",
                f"all([{of('bool')}, True])",
            ]
        if kind == "str":
            return [
                f"({of('str')} + {of('str')})[:8]",
                f"str({of('int')})",
                f"str({of('bool')})",
                f"'{{}}_{{}}'.format({of('int')}, {of('str')})",
                f"'%d.%s' % ({of('int')}, {of('str')})",
                f"f'{{{n}}}|{{{n} > 1}}'",
                f"({of('str')})[{pick(['0:2', '1:', '::2', '-2:', ':-1'])}]",
                f"({of('str')}).upper()",
                f"'-'.join([{of('str')}, {of('str')}])",
                f"({of('str')}).replace('a', 'bb')",
                f"({of('str')}).strip('a')",
            ]
        if kind == "Tensor":
            x, z = of("Tensor"), of("Tensor")
            return [
                f"({x} {pick('+-*')} {n})",
                f"({x} {pick('+-*')} {of('float')})",
                f"({n} {pick('+-*')} {x})",
                f"({x} {pick('+-*')} {z}.mean())",
                f"({x} / {pick(['2', '-4.0', '3'])})",
                f"({x} // 2)",
                f"({x} % 3)",
                f"{x}.abs()",
                f"(-{x})",
                f"{x}.clone()",
                f"torch.relu({x})",
                f"torch.clamp({x}, -3, {self.numbers.randint(0, 9)})",
                f"{x}.flip(0)",
                f"torch.where({x} > {n}, {x}, {x} * 0)",
                f"torch.stack([{x}.sum(), {z}.sum(), {x}.max(), {z}.min()])",
                f"torch.cat([{x}[:2], {z}[2:]])",
                f"{x}.cumsum(0)",
                f"{x}.to(torch.float64).to({x}.dtype)",
                f"torch.full([4], {of('float')})",
                f"torch.arange(4) * {n} + {x}",
            ]
        if kind == "List[int]":
            a = of("List[int]")
            return [
                f"[{of('int')}, {n}, {of('int')}]",
                f"{a}[{pick(['1:', ':2', '::2', '-2:', ':-1', '1:3'])}]",
                f"({a}[:3] + {of('List[int]')}[:3])",
                f"[w * 2 for w in {a}[:4]]",
                f"[w for w in range({self.numbers.randint(0, 4)})]",
                f"sorted({a})",
                f"list({a})",
                f"list(range({self.numbers.randint(0, 4)}))",
                f"({a}[:2] * 2)",
                f"list({of('Dict[str, int]')}.values())",
            ]
        if kind == "List[float]":
            return [f"[{of('float')}, {of('float')}]", f"[w / 2 for w in {of('List[int]')}[:3]]"]
        if kind == "List[Tensor]":
            return [f"[{of('Tensor')}, {of('Tensor')}]", f"[w + 1 for w in {of('List[Tensor]')}]"]
        if kind == "Dict[str, int]":
            return [
                f"{{'a': {of('int')}, 'b': {n}}}",
                f"{{'z': {n}}}",
                f"{{str(w): w * {n} for w in range(3)}}",
                f"dict({of('Dict[str, int]')})",
            ]
        if kind == "Tuple[int, float]":
            return [f"({of('int')}, {of('float')})"]
        return [of("int"), "None"]


def inputs(numbers: random.Random) -> tuple[Any, ...]:
    """The arguments of a call; the first two are the numbers of tensors."""
    return (
        [numbers.choice([-2.5, -1.0, 0.0, 0.5, 1.0, 3.0]) for _ in range(4)],
        [float(numbers.randint(-3, 6)) for _ in range(4)],
        numbers.randint(-4, 5),
        numbers.randint(-4, 5),
        numbers.choice([-1.5, 0.0, 0.25, 2.0]),
        numbers.random() < 0.5,
        numbers.choice(["", "a", "ab", "ba"]),
        [numbers.randint(-5, 5) for _ in range(numbers.randint(2, 5))],
        numbers.choice([None, 0, 3, -2]),
        {"a": numbers.randint(-2, 4), "c": 1},
    )

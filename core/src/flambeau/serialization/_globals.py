"""Which classes and functions a pickle names, without running it."""

from __future__ import annotations

import pickletools

from flambeau.serialization._errors import CheckpointError

_REMEMBERED = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_RECALLED = {"GET", "BINGET", "LONG_BINGET"}


def globals_of(data: bytes, path: str) -> list[tuple[str, str]]:
    """The (module, name) pairs of a pickle, each once, in the order in which it names them.

    A name may be computed by the pickle itself, as no pickler does; such ones are not seen.

    Raises:
        CheckpointError: the pickle is damaged.
    """
    found: dict[tuple[str, str], None] = {}
    memo: dict[object, object] = {}
    texts: list[object] = ["", ""]  # the two things that were pushed last
    try:
        for op, argument, _ in pickletools.genops(data):
            if op.name in ("GLOBAL", "INST"):
                module, _, name = str(argument).partition(" ")
                found[module, name] = None
            elif op.name == "STACK_GLOBAL":
                module, name = map(str, texts)
                found[module, name] = None
            if op.name in _REMEMBERED:
                memo[len(memo) if argument is None else argument] = texts[1]
            elif op.name in _RECALLED:
                texts = [texts[1], memo.get(argument)]
            elif op.stack_after:
                texts = [texts[1], argument]
    except (ValueError, IndexError, OverflowError) as error:
        raise CheckpointError(f"data.pkl is no pickle: {error}", path) from error
    return list(found)

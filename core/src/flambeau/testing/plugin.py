"""The pytest plugin of the conformance kit, ``pytest --pyargs flambeau.testing.backend``.

Every pytest run on a machine with flambeau loads this module, so it imports nothing of weight, and
adds its options only where the kit itself is asked for: other projects have a ``--device`` too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_KIT = "flambeau.testing.backend"
_FOLDER = Path(__file__).parent / "backend"


def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Switch the kit on if an argument names it."""
    if not any(map(_names_the_kit, args)):
        return
    parser.getgroup("flambeau").addoption(
        "--device",
        action="append",
        metavar="TYPE",
        help="device type whose backend the conformance kit tests; may be given several times",
    )
    from flambeau.testing.backend import HINTS, LEVELS, _session

    parser.getgroup("flambeau").addoption(
        "--level",
        choices=(*LEVELS, HINTS),
        help="run the tests up to this level; all by default",
    )
    parser.getgroup("flambeau").addoption(
        "--quick",
        action="store_true",
        help="a first verdict: about an eighth of the tests, a minute at most, and no badge",
    )
    parser.getgroup("flambeau").addoption(
        "--seconds",
        type=float,
        metavar="N",
        help="begin no test after N seconds (60 with --quick) and tell how many were not reached; "
        "0 for no such limit",
    )
    parser.getgroup("flambeau").addoption(
        "--conformance-json",
        metavar="FILE",
        help="also write the result as JSON",
    )

    early_config.pluginmanager.register(_session, "flambeau-conformance")


def _names_the_kit(argument: str) -> bool:
    where = argument.partition("::")[0]
    if where.startswith(_KIT):
        return True
    return not where.startswith("-") and Path(where).absolute().is_relative_to(_FOLDER)

"""What a report of a fault says of an installation."""

from __future__ import annotations

from flambeau._cli.doctor import diagnose, format_findings
from flambeau.plugin.host import host

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """What ``python -m flambeau doctor`` prints."""
    return format_findings(diagnose(host))


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())

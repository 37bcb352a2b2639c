"""A switch of the kernel for whole attention layers, which has no effect."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_chosen = [True]


def get_fastpath_enabled() -> bool:
    """What was set last."""
    return _chosen[0]


def set_fastpath_enabled(value: bool) -> None:
    """Remember a choice; there is one kernel."""
    _chosen[0] = value

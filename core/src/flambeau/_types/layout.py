"""How a tensor keeps its elements: dense in strided memory, or sparse as coordinates and values."""

from __future__ import annotations

from typing import Any


class layout:  # noqa: N801 - PyTorch's name
    """The memory layout of a tensor, its attribute ``layout``.

    ``strided`` is dense memory, every element at its own offset; ``sparse_coo`` the positions and
    values of some elements, as `flambeau.sparse_coo_tensor` makes them.

    >>> import flambeau as fb
    >>> fb.ones(2).layout
    torch.strided
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return layout_named, (self._name,)


strided = layout("strided")
sparse_coo = layout("sparse_coo")


OTHERS = {
    name: layout(name)
    for name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")
}
"""Layouts that no tensor has; programs for PyTorch ask whether one does."""


def layout_named(name: str) -> layout:
    """The layout of a name, also one that no tensor has.

    Raises:
        TypeError: there is none.
    """
    known = {"strided": strided, "sparse_coo": sparse_coo, **OTHERS}
    if name not in known:
        raise TypeError(f"there is no layout {name!r:.80}")
    return known[name]

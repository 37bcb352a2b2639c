"""Lists and dictionaries that stand in the arguments of nodes, and do not change.

A node is told of its operands when its arguments are assigned; a list changed in place would
leave the users of a node wrong.
"""

from __future__ import annotations

from typing import Any, NoReturn

import flambeau as fb

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to "
        "modify the kwargs or args of a torch.fx.Node object,\ninstead create a new copy of it "
        "and assign the copy to the node:\n\n    new_args = ...  # copy and mutate args\n"
        "    node.args = new_args"
    )


class immutable_list(list[Any]):  # noqa: N801 - PyTorch's name
    """A list that refuses changes with TypeError.

    >>> from flambeau.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2]) == [1, 2]
    True
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)

    def __hash__(self) -> int:  # type: ignore[override] - a list has none
        return hash(tuple(self))


class immutable_dict(dict[str, Any]):  # noqa: N801
    """A dictionary that refuses changes with TypeError.

    >>> from flambeau.fx.immutable_collections import immutable_dict
    >>> immutable_dict(a=1)
    {'a': 1}
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (tuple(self.items()),)

    def __hash__(self) -> int:  # type: ignore[override] - a dict has none
        return hash(tuple(self.items()))


for _name in (
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"
).split():
    setattr(immutable_list, _name, _refuse)
for _name in "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split():
    setattr(immutable_dict, _name, _refuse)


fb.utils._pytree.register_pytree_node(
    immutable_list, lambda a: (list(a), None), lambda parts, _: immutable_list(parts)
)
fb.utils._pytree.register_pytree_node(
    immutable_dict,
    lambda a: (list(a.values()), list(a)),
    lambda parts, keys: immutable_dict(zip(keys, parts, strict=True)),
)

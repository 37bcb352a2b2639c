"""Arrays that are promises: a function and its arguments, until they are realised."""

from flambeau.plugin import make_lock

LONGEST = 500
"""The longest chain that may wait: a program that never looks would keep every step's graph."""

_lock = make_lock()


class Lazy:
    """An array of known shape and dtype; its elements come from a function when needed."""

    __slots__ = ("args", "dtype", "function", "length", "shape", "value")

    def __init__(self, shape, dtype, value=None, function=None, args=()):
        self.shape, self.dtype, self.value = shape, dtype, value
        self.function, self.args = function, args
        self.length = 1 + max((a.length for a in waiting(args)), default=0)
        if self.length > LONGEST:
            realise(self)


def waiting(value):
    """The arrays in arguments that are not realised."""
    if isinstance(value, Lazy):
        return [value] if value.value is None else []
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in waiting(item)]
    return []


def values(value):
    """Arguments with elements in the place of promises."""
    if isinstance(value, Lazy):
        return value.value
    if isinstance(value, (tuple, list)):
        return type(value)([values(item) for item in value])
    return value


def realise(array):
    """The elements; without recursion, for a chain is longer than Python's stack is deep."""
    with _lock:
        stack = [array]
        while stack:
            node = stack[-1]
            if node.value is None and (before := waiting(node.args)):
                stack.extend(before)
                continue
            if node.value is None:
                node.value = node.function(*values(node.args))
                node.function, node.args, node.length = None, (), 0  # lets go of what came before
            stack.pop()
    return array.value

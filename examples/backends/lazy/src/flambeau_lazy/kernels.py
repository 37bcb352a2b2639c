"""The kernels of device ``lazy``: those of the toy, put off."""

import numpy as np
from flambeau_toy.backend import TO_NUMPY
from flambeau_toy.kernels import KERNELS as LIBRARY

from flambeau.ops import OPS
from flambeau.plugin import Spec
from flambeau_lazy.backend import library
from flambeau_lazy.graph import Lazy, realise, values

# Their shapes or their errors depend on elements.
LOOKING = ("nonzero", "floor_divide", "remainder", "fmod")


def specs(value):
    """Arguments as shape rules take them: shape and dtype in the place of arrays."""
    if isinstance(value, Lazy):
        return Spec(value.shape, value.dtype)
    if isinstance(value, (tuple, list)):
        return type(value)([specs(item) for item in value])
    return value


def put_off(name):
    """The kernel that returns a promise; the shape is what the op's own rule says."""
    rule, compute = OPS[name].body, LIBRARY[name]

    def function(*args):
        found = compute(*args)
        return found if isinstance(found, tuple) else np.asarray(found)

    def kernel(*args):
        try:
            result = rule(*specs(args))
        except RuntimeError as error:  # of the core, which has said this before if it is asked
            raise ValueError(str(error)) from error
        for each in (result,) if isinstance(result, Spec) else result:
            if each.dtype not in TO_NUMPY:  # said now: nobody would know later which op it was
                raise TypeError(f"the library has no {each.dtype.name}")
        if isinstance(result, Spec):
            return Lazy(result.shape, result.dtype, None, function, args)
        both = Lazy((), None, None, function, args)
        return tuple(
            [
                Lazy(each.shape, each.dtype, None, lambda found, i=i: found[i], (both,))
                for i, each in enumerate(result)
            ]
        )

    return kernel


def at_once(name):
    """The kernel that looks: it realises its arguments."""

    def kernel(*args):
        for array in args:
            if isinstance(array, Lazy):
                realise(array)
        found = np.asarray(LIBRARY[name](*values(args)))
        return Lazy(found.shape, library.dtype_of(found), found)

    return kernel


KERNELS = {name: at_once(name) if name in LOOKING else put_off(name) for name in LIBRARY}

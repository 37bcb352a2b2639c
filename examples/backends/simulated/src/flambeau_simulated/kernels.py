"""The kernels: each allocates its result and asks the current stream to fill it.

What computes is NumPy's kernel, in the place of a kernel of yours. The result's shape is known
before it is computed: it is what the shape rule of the op says.
"""

import numpy as np

from flambeau.ops import OPS
from flambeau.plugin import Spec, int64
from flambeau_numpy.extending import KERNELS as LIBRARY
from flambeau_numpy.extending import TO_NUMPY
from flambeau_simulated.arrays import DeviceArray

VIEWS = ("slice", "permute", "view", "expand", "diagonal")
WRITES = ("assign", "fill_")


def mapped(function, value):
    """Arguments with `function` of an array in the place of each."""
    if isinstance(value, DeviceArray):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)([mapped(function, item) for item in value])
    return value


def kernels(backend):
    """All kernels on the arrays of `backend`."""

    def spec(array):
        return Spec(array.shape, backend.dtype_of(array))

    def windows(args):
        index = backend.current_device()

        def window(array):
            if array.index != index:
                raise ValueError(
                    f"an array of simulated:{array.index} in the work of simulated:{index}; "
                    "copy it with .to()"
                )
            return array.window

        return mapped(window, args)

    def computing(name):
        rule, compute = OPS[name].body, LIBRARY[name]

        def kernel(*args):
            try:
                result = rule(*mapped(spec, args))
            except RuntimeError as error:  # of the core, which has said this before if it is asked
                raise ValueError(str(error)) from error
            given, single = windows(args), isinstance(result, Spec)
            made = [backend.empty(s.shape, s.dtype) for s in ([result] if single else result)]
            targets = [array.window for array in made]  # not the arrays: they may die before

            def task():
                try:
                    found = compute(*given)
                except ZeroDivisionError as error:  # the core turns only what is raised at once
                    raise RuntimeError(f"ZeroDivisionError: {error}") from error
                for target, value in zip(targets, [found] if single else found, strict=True):
                    LIBRARY["assign"](target, value)

            backend.ask(task)
            return made[0] if single else tuple(made)

        return kernel

    def writing(name):
        compute = LIBRARY[name]

        def kernel(*args):
            given = windows(args)
            if name == "assign":  # as shapes are said to be wrong at once
                target, source = given
                np.broadcast_to(source, target.shape)
            backend.ask(lambda: compute(*given))

        return kernel

    def viewing(name):
        compute = LIBRARY[name]
        return lambda array, *args: array.view(compute(array.window, *args))

    def nonzero(array):
        """Its shape depends on elements, so the host has to wait."""
        found = []
        given = windows(array)
        backend.ask(lambda: found.append(LIBRARY["nonzero"](given)))
        backend.stream_wait(backend.current_stream(array.index))
        (places,) = found
        data = places.astype(TO_NUMPY[int64]).tobytes()
        return backend.from_host(data, places.shape, int64, array.index)

    made = {name: viewing(name) for name in VIEWS} | {name: writing(name) for name in WRITES}
    made["nonzero"] = nonzero
    for name, op in OPS.items():
        if op.tier == "primitive" and name not in made:
            made[name] = computing(name)
    return made

"""The conformance kit: what a backend must do, as tests that run from the installed package.

::

    pytest --pyargs flambeau.testing.backend --device mydevice [--device other]

The levels build on each other; the summary says which is reached:

* ``memory``: arrays go to the device and come back; the plugin loads on first use and not before.
* ``primitives``: every primitive agrees with device ``ref`` for all dtypes, layouts and corners.
* ``inference``: views and writes, composites of the backend's own, errors.
* ``training``: gradients and second gradients of every op that has one.
* ``performance-hints``: what costs time on the device; told in the summary, and never a failure.

A backend says through the hook ``flambeau_expectations`` where it is known to differ.  A dtype that
it does not support is skipped.  A known failure is listed under the test's name and the part of
its id behind the device, such as ``test_samples_agree[sort-float16-sliced]``; it must then fail:
a listed test that passes, or does not exist, is an error.
"""

LEVELS = ("memory", "primitives", "inference", "training")
HINTS = "performance-hints"

"""What a package with faster kernels for ``cpu`` builds on, and what it may replace beside them.

Its kernels take and return NumPy arrays, and whole ops it replaces by ``flambeau_kernels`` as any
package does.  What only a package of this device needs is here:

* the array type and its dtypes: `Array`, `TO_NUMPY`, `FROM_NUMPY`, `BFLOAT16`, `FOREIGN`;
* memory: large results come from the pool by `empty` and `empty_like`, those below `THRESHOLD`
  bytes from NumPy; a package lends the blocks of the pool by `offer_pool`;
* the user's ``np.seterr`` is not for tensors: `quiet` and `silent`;
* the kernel to fall back on, by the name of its op: `KERNELS`;
* threads: `follow` tells a package how many there are, now and whenever that changes;
* matrix products that use them: `multiply`, `product`, `spread`;
* what all products ask first: a package gives it by `offer_products`, `offered` is what is given,
  and a kernel that is `asking` asks it;
* captured plans as a whole: a package runs them by `offer_plans`;
* arrays in another dtype: a package converts them by `offer_casts`;
* whether indices are in range: a package looks by `offer_indices`;
* the generator of random numbers: `MT19937`, and what kernels know of it, `Generator`.

Four modules are for such packages as well: `flambeau_numpy.pointwise` makes kernels of ufuncs and
formulas; `flambeau_numpy.casts` knows 16-bit floats; `flambeau_numpy.extending.parts` has what some
NumPy kernels share with faster ones of their ops; `flambeau_numpy.threads` may be imported before
NumPy is, since a library whose idle threads shall sleep is loaded in its `sleeping_when_idle`.  All
others are nobody else's business.
"""

from __future__ import annotations

from flambeau_numpy.allocator import THRESHOLD, empty, empty_like, offer_pool
from flambeau_numpy.casts import offer_casts
from flambeau_numpy.dtypes import BFLOAT16, FOREIGN, FROM_NUMPY, TO_NUMPY
from flambeau_numpy.generator import MT19937, Generator
from flambeau_numpy.indices import offer_indices
from flambeau_numpy.kernels import KERNELS
from flambeau_numpy.plans import offer_plans
from flambeau_numpy.pointwise import Array, Kernel
from flambeau_numpy.products import asking, multiply, offer_products, offered, product, spread
from flambeau_numpy.silence import quiet, silent
from flambeau_numpy.threads import follow

__all__ = [
    "BFLOAT16",
    "FOREIGN",
    "FROM_NUMPY",
    "KERNELS",
    "MT19937",
    "THRESHOLD",
    "TO_NUMPY",
    "Array",
    "Generator",
    "Kernel",
    "asking",
    "empty",
    "empty_like",
    "follow",
    "multiply",
    "offer_casts",
    "offer_indices",
    "offer_plans",
    "offer_pool",
    "offer_products",
    "offered",
    "product",
    "quiet",
    "silent",
    "spread",
]

"""The functions of the array API standard, for code that is written for any array library.

``x.__array_namespace__()`` gives this module.  The functions have the standard's names, arguments
and promotion: the dtype of a result depends on dtypes alone, also of tensors without dimensions,
which `flambeau`'s own functions treat like numbers.  Source: https://data-apis.org/array-api/2024.12.

>>> import flambeau as fb
>>> x = fb.tensor([[3.0, 4.0]])
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=1, keepdims=True)
tensor([[7.]])
>>> xp.linalg.vector_norm(x)
tensor(5.)
"""

from __future__ import annotations

from flambeau import (
    bool as bool,
)
from flambeau import (
    complex64 as complex64,
)
from flambeau import (
    complex128 as complex128,
)
from flambeau import (
    float32 as float32,
)
from flambeau import (
    float64 as float64,
)
from flambeau import (
    int8 as int8,
)
from flambeau import (
    int16 as int16,
)
from flambeau import (
    int32 as int32,
)
from flambeau import (
    int64 as int64,
)
from flambeau import (
    uint8 as uint8,
)
from flambeau import (
    uint16 as uint16,
)
from flambeau import (
    uint32 as uint32,
)
from flambeau import (
    uint64 as uint64,
)
from flambeau.array_api import fft as fft
from flambeau.array_api import linalg as linalg
from flambeau.array_api._creation import *  # noqa: F403 - listed in that module
from flambeau.array_api._dtypes import *  # noqa: F403
from flambeau.array_api._elementwise import *  # noqa: F403
from flambeau.array_api._info import __array_namespace_info__ as __array_namespace_info__
from flambeau.array_api._reductions import *  # noqa: F403
from flambeau.array_api._shapes import *  # noqa: F403
from flambeau.array_api._sorting import *  # noqa: F403
from flambeau.array_api.linalg import matmul as matmul
from flambeau.array_api.linalg import matrix_transpose as matrix_transpose
from flambeau.array_api.linalg import tensordot as tensordot
from flambeau.array_api.linalg import vecdot as vecdot

__array_api_version__ = "2024.12"
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

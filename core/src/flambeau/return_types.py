"""The classes of results that are named tuples, such as what `max` along a dimension returns.

>>> import flambeau as fb
>>> isinstance(fb.ones(2).max(0), fb.return_types.max)
True
"""

from __future__ import annotations

from flambeau.ops.indexing import sort_return as sort
from flambeau.ops.indexing import topk_return as topk
from flambeau.ops.reduction import max_return as max
from flambeau.ops.reduction import min_return as min
from flambeau.ops.statistics import aminmax_return as aminmax
from flambeau.ops.statistics import kthvalue_return as kthvalue
from flambeau.ops.statistics import median_return as median
from flambeau.ops.statistics import mode_return as mode
from flambeau.ops.statistics import nanmedian_return as nanmedian

__all__ = [
    "aminmax",
    "kthvalue",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "sort",
    "topk",
]

"""Names of ``torch.utils.data`` that only programs for PyTorch want."""

from flambeau.compat._torch.utils.data.datapipes._decorator import (
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
)
from flambeau.compat._torch.utils.data.datapipes.datapipe import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
)

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
]

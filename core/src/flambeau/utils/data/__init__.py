"""Data sets, the order in which to visit them, and the loader that makes batches.

>>> import flambeau as fb
>>> from flambeau.utils.data import DataLoader, TensorDataset
>>> data = TensorDataset(fb.arange(5), fb.arange(5) * 10)
>>> for x, y in DataLoader(data, batch_size=2):
...     print(x.tolist(), y.tolist())
[0, 1] [0, 10]
[2, 3] [20, 30]
[4] [40]
"""

from flambeau.absence import tell as _tell
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data.dataloader import DataLoader, get_worker_info
from flambeau.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from flambeau.utils.data.distributed import DistributedSampler
from flambeau.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

_tell(__name__)

"""Data sets that tests of the loader and of what it takes share."""

from __future__ import annotations

from flambeau.utils.data import Dataset, IterableDataset


class Squares(Dataset):
    """0, 1, 4, … as a map."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, index):
        if not 0 <= index < self.n:
            raise IndexError(index)
        return index**2

    def __len__(self):
        return self.n


class Counter(IterableDataset):
    """0, 1, … as a stream that claims some length."""

    def __init__(self, n, claimed=None):
        self.n, self.claimed = n, claimed

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        if self.claimed is None:
            raise TypeError("unknown length")
        return self.claimed


def lists(batches):
    return [batch.tolist() for batch in batches]

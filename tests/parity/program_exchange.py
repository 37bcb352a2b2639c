"""What tests of programs in archives share: exchanged archives, and results that are compared."""

import io

import torch

import flambeau as fb

RANDOM = ("FractionalMaxPool2d", "FractionalMaxPool3d")
"""They draw where they pool, in evaluation too."""


def flat(value):
    """The tensors in a result."""
    if isinstance(value, (fb.Tensor, torch.Tensor)):
        return [value]
    return [] if value is None else [each for part in value for each in flat(part)]


def assert_equal(found, expected):
    for a, b in zip(flat(found), flat(expected), strict=True):
        if isinstance(a, fb.Tensor):
            a = torch.tensor(a.tolist(), dtype=b.dtype).reshape(b.shape)
        torch.testing.assert_close(a, b, equal_nan=True)


def exchanged(program, save, load):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)

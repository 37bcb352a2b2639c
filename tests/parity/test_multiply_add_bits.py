"""Sums with a product have PyTorch's last bit too, where it multiplies and adds at once."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - without PyTorch there is nothing to compare with

pytest.importorskip("flambeau_native")
if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
    pytest.skip("PyTorch computes without fused multiply-add here", allow_module_level=True)

SHAPES = [
    ((257,), (257,), (257,)),
    ((33, 65), (33, 65), (33, 65)),
    ((4, 3), (4, 3), ()),
    ((), (), ()),
    ((0, 3), (3,), (1,)),
    ((64, 300), (300,), (64, 1)),
]
HALF = [((64,), (64,), (64,)), ((32, 96), (32, 96), (32, 96))]  # its tails PyTorch rounds twice
FACTORS = [0.1, -0.37, 1.0, 2.0, 0.5, 0.999, -1, 1e-4]
DTYPES = ["float32", "float64", "bfloat16", "float16"]
CALLS = {
    "add": lambda lib, x, y, z, v: lib.add(x, y, alpha=v),
    "sub": lambda lib, x, y, z, v: lib.sub(x, y, alpha=v),
    "rsub": lambda lib, x, y, z, v: lib.rsub(x, y, alpha=v),
    "addcmul": lambda lib, x, y, z, v: lib.addcmul(x, y, z, value=v),
    "addcdiv": lambda lib, x, y, z, v: lib.addcdiv(x, y, z, value=v),
    "lerp": lambda lib, x, y, z, v: lib.lerp(x, y, v),
    "lerp by a tensor": lambda lib, x, y, z, v: lib.lerp(x, y, z),
}


def _operands(lib, shapes, dtype, turned):
    draw = np.random.default_rng(0)
    found = []
    for shape in shapes:
        t = lib.from_numpy(np.asarray(draw.normal(size=shape[::-1]))).to(getattr(lib, dtype))
        found.append(t.permute(tuple(range(t.dim())[::-1])) if turned else t.reshape(shape))
    return found


def _numbers(lib, t):
    whole = {2: lib.int16, 4: lib.int32, 8: lib.int64}[t.dtype.itemsize]
    return t.contiguous().reshape(-1).view(whole).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("turned", [False, True])
def test_results_have_pytorchs_bits(name, dtype, turned):
    for shapes in HALF if dtype in ("bfloat16", "float16") else SHAPES:
        for factor in FACTORS:
            found = []
            for lib in (torch, fb):
                x, y, z = _operands(lib, shapes, dtype, turned)
                result = CALLS[name](lib, x, y, z, factor)
                found.append((tuple(result.shape), _numbers(lib, result)))
            assert found[0] == found[1], (shapes, factor)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("view", [False, True])
def test_writes_have_pytorchs_bits(dtype, view):
    found = []
    for lib in (torch, fb):
        x, y, z = _operands(lib, ((33, 65), (33, 65), (33, 65)), dtype, False)
        base = lib.zeros(66, 65, dtype=getattr(lib, dtype))
        t = base[::2] if view else x
        for factor in (0.3, -0.7, 2):
            t.add_(y, alpha=factor).sub_(z, alpha=factor)
            t.addcmul_(y, z, value=factor).addcdiv_(y, z, value=factor).lerp_(z, factor / 3)
        found.append(_numbers(lib, t))
        assert view is (lib.count_nonzero(base) > 0).item()
    assert found[0] == found[1]

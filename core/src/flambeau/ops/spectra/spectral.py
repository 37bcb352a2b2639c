"""Discrete Fourier transforms: three canonical ops, the functions of PyTorch 1.0, short-time forms.

With w = exp(-2πi/n) the forward transform of n numbers is X_k = Σ_j x_j w^(jk); the inverse has the
conjugate of w.  Of real numbers X_(n-k) is the conjugate of X_k, so that n//2 + 1 numbers say all.
`flambeau.fft` has today's functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.warning import warn
from flambeau._memory.views import geometry_of
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.complexes import complex as compose
from flambeau.ops.pointwise.complexes import view_as_complex, view_as_real
from flambeau.ops.shapes.movement import as_strided, cat


@composite(out=None)
def _fft_c2c(self: Tensor, dim: tuple[int, ...], forward: bool, scale: float) -> Tensor:
    """The transform along dimensions, times `scale`."""
    x = cast(self, self.dtype.to_complex())
    for d in dim:
        n = x._a.shape[d]
        x = _along(x, d, _powers(x, n, n, -1 if forward else 1))
    return x if scale == 1 else x * scale


@_fft_c2c.gradient
def _(F, g, self_dtype, dim, forward, scale):  # the matrix of w^(jk) is its own transpose
    grad = F.fft_c2c(g, dim, forward, scale)
    return grad if self_dtype.is_complex else F.cast(grad, self_dtype)


@composite(out=None)
def _fft_r2c(self: Tensor, dim: int, scale: float) -> Tensor:
    """The first half of the forward transform of real numbers, times `scale`."""
    x = cast(self, self.dtype.to_complex())
    n = x._a.shape[dim]
    x = _along(x, dim, _powers(x, n, n // 2 + 1, -1))
    return x if scale == 1 else x * scale


@_fft_r2c.gradient
def _(F, g, self_shape, self_dtype, dim, scale):
    half = tuple(slice(0, n, 1) for n in g.shape)
    full = (*g.shape[:dim], self_shape[dim], *g.shape[dim + 1 :])
    grad = F.fft_c2c(F.slice_backward(g, full, half), (dim,), True, scale)
    return F.cast(grad, self_dtype)


@composite(out=None)
def _fft_c2r(self: Tensor, dim: int, n: int, scale: float) -> Tensor:
    """The inverse transform of the first half of what came from `n` real numbers, times `scale`.

    Imaginary parts that no transform of real numbers has are ignored.
    """
    x = cast(self, self.dtype.to_complex())
    powers = _powers(x, n // 2 + 1, n, 1)
    middle = (slice(1, (n + 1) // 2, 1), slice(0, n, 1))
    twice = powers + OPS["slice_backward"](powers[1 : (n + 1) // 2], (n // 2 + 1, n), middle)
    found = OPS["real"](_along(x, dim, twice))
    return found if scale == 1 else found * scale


@_fft_c2r.gradient
def _(F, g, self_dtype, dim, n, scale):
    half = F.conj(F.fft_r2c(g, dim, scale))
    middle = tuple(
        slice(1, (n + 1) // 2, 1) if d == dim else slice(0, m, 1) for d, m in enumerate(half.shape)
    )
    # All but the first and, of an even number, the last stand for two equal terms.
    grad = F.add(half, F.slice_backward(F.slice(half, middle), tuple(half.shape), middle))
    return grad if self_dtype.is_complex else F.cast(grad, self_dtype)


def _powers(like: Tensor, rows: int, columns: int, sign: int) -> Tensor:
    """The matrix of exp(sign·2πi·jk/n) for n the larger of its sizes."""
    be, n = like._be, max(rows, columns)
    j, k = (wrap(be, be.places(m), D.int64) for m in (rows, columns))
    turns = (j.reshape((rows, 1)) * k.reshape((1, columns))) % n  # exact, unlike large angles
    angles = cast(turns, D.float64) * (sign * 2 * math.pi / n)
    return cast(compose(angles.cos(), angles.sin()), like.dtype)


def _along(x: Tensor, dim: int, matrix: Tensor) -> Tensor:
    return (x.movedim(dim, -1) @ matrix).movedim(-1, dim)


@public(function=False)
@takes_as_annotated
def fft(input: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
    """The transform of complex numbers given as pairs, over the last `signal_ndim` dimensions.

    The last dimension has the real and imaginary parts; those before it that are no signal are a
    batch.  With `normalized` the result is divided by the square root of the number of elements.
    This is what ``flambeau.fft(...)`` of PyTorch 1.0 does; `flambeau.fft.fft` is today's.

    Raises:
        RuntimeError: the dtype is not floating, or the shape has no room for the signal.

    >>> import flambeau as fb
    >>> fb.fft(fb.tensor([[1.0, 0.0], [2.0, 0.0]]), 1)
    tensor([[ 3.,  0.],
            [-1.,  0.]])
    """
    return _on_pairs("fft", input, signal_ndim, normalized, True)


@public
@takes_as_annotated
def ifft(input: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
    """The inverse of `fft` with the same arguments.

    >>> import flambeau as fb
    >>> fb.ifft(fb.tensor([[3.0, 0.0], [-1.0, 0.0]]), 1)
    tensor([[1., 0.],
            [2., 0.]])
    """
    return _on_pairs("ifft", input, signal_ndim, normalized, False)


def _on_pairs(name: str, input: Tensor, ndim: int, normalized: bool, forward: bool) -> Tensor:
    x = _need_signal(name, input, ndim, pairs=True)
    z = view_as_complex(x.contiguous())
    dims = tuple(range(z.dim() - ndim, z.dim()))
    count = math.prod(z._a.shape[d] for d in dims)
    if not count:
        raise RuntimeError(f"{name}(): a signal without elements, got shape {list(x._a.shape)}")
    scale = count**-0.5 if normalized else 1.0 if forward else 1 / count
    return view_as_real(_fft_c2c(z, dims, forward, scale))


def _need_signal(name: str, input: Tensor, ndim: int, *, pairs: bool) -> Tensor:
    x = need_tensor(input, name, "input")
    if x.dtype not in (D.float32, D.float64):
        raise RuntimeError(f"{name}(): expected a float32 or float64 tensor, but got {x.dtype}")
    if not 1 <= ndim <= 3:
        raise RuntimeError(f"{name}(): signal_ndim must be 1, 2 or 3, but got {ndim}")
    if x.dim() < ndim + pairs:
        raise RuntimeError(
            f"{name}(): expected at least {ndim + pairs} dimensions for signal_ndim={ndim}, but "
            f"got shape {list(x._a.shape)}"
        )
    if pairs and x._a.shape[-1] != 2:
        raise RuntimeError(
            f"{name}(): expected a last dimension of size 2, the real and imaginary parts, but got "
            f"shape {list(x._a.shape)}"
        )
    return x


@public
@takes_as_annotated
def rfft(
    input: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True
) -> Tensor:
    """The transform of real numbers over the last `signal_ndim` dimensions, as pairs.

    With `onesided` the last of them has the n // 2 + 1 numbers that determine the others.

    Raises:
        RuntimeError: the dtype is not floating, or the shape has no room for the signal.

    >>> import flambeau as fb
    >>> fb.rfft(fb.tensor([1.0, 2.0, 3.0]), 1)
    tensor([[ 6.0000,  0.0000],
            [-1.5000,  0.8660]])
    """
    x = _need_signal("rfft", input, signal_ndim, pairs=False)
    dims = tuple(range(x.dim() - signal_ndim, x.dim()))
    scale = math.prod(x._a.shape[d] for d in dims) ** -0.5 if normalized else 1.0
    if not onesided:
        return view_as_real(_fft_c2c.run(cast(x, x.dtype.to_complex()), dims, True, scale))
    z = _fft_r2c.run(x, dims[-1], scale)
    return view_as_real(_fft_c2c.run(z, dims[:-1], True, 1.0) if dims[:-1] else z)


@public
@takes_as_annotated
def irfft(
    input: Tensor,
    signal_ndim: int,
    normalized: bool = False,
    onesided: bool = True,
    signal_sizes: Sequence[int] | None = None,
) -> Tensor:
    """The inverse of `rfft`: real numbers from the pairs of their transform.

    Args:
        signal_sizes: the shape of the original signal; by default the size of its last dimension is
            taken to be even.

    Raises:
        RuntimeError: the dtype is not floating, or shape and `signal_sizes` do not fit.

    >>> import flambeau as fb
    >>> fb.irfft(fb.rfft(fb.tensor([1.0, 2.0, 3.0]), 1), 1, signal_sizes=(3,))
    tensor([1., 2., 3.])
    """
    x = _need_signal("irfft", input, signal_ndim, pairs=True)
    z = view_as_complex(x.contiguous())
    dims = tuple(range(z.dim() - signal_ndim, z.dim()))
    have = [z._a.shape[d] for d in dims]
    sizes = list(signal_sizes or (*have[:-1], 2 * (have[-1] - 1) if onesided else have[-1]))
    expected = [*sizes[:-1], sizes[-1] // 2 + 1] if onesided else sizes
    if have != expected:
        raise RuntimeError(
            f"irfft(): signal_sizes={tuple(sizes)} with onesided={onesided} needs an input of "
            f"signal shape {expected}, but got {have}"
        )
    n = sizes[-1]
    if not math.prod(sizes):
        raise RuntimeError(f"irfft(): signal_sizes={tuple(sizes)} have no elements")
    scale = math.prod(sizes) ** -0.5 if normalized else 1 / math.prod(sizes)
    if dims[:-1]:
        z = _fft_c2c.run(z, dims[:-1], False, 1.0)
    return _fft_c2r.run(z.narrow(-1, 0, n // 2 + 1), dims[-1], n, scale)


@public
@takes_as_annotated
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """The transforms of overlapping windows of a signal: (..., frequencies, frames).

    X[k, t] = Σ_j window[j] x[t·hop_length + j] exp(-2πi jk/n_fft).

    Args:
        input: a signal (n,) or a batch of them (b, n), real or complex.
        n_fft: the number of elements that are transformed.
        hop_length: the distance of neighbouring frames; default ``n_fft // 4``.
        win_length: the length of the window, in the middle of the frame; default `n_fft`.
        window: its values; default ones.
        center: extend the signal by ``n_fft // 2`` on both sides, so that frame t has its middle
            at ``t * hop_length``.
        pad_mode: how: ``"reflect"``, ``"constant"``, ``"replicate"`` or ``"circular"``.
        normalized: divide by the square root of `n_fft`.
        onesided: keep the first ``n_fft // 2 + 1`` frequencies; default for real signals.
        return_complex: complex numbers, or pairs in a new last dimension; by default, as in
            PyTorch 1.0, pairs for real signals.

    Raises:
        RuntimeError: the signal is too short, or an argument does not fit.

    >>> import flambeau as fb
    >>> fb.stft(fb.ones(8), 4, center=False, return_complex=True).shape
    torch.Size([3, 5])
    """
    x = need_tensor(input, "stft", "input")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    _check_frames("stft", x, x.dim() in (1, 2), n_fft, hop, length, window)
    real = not (x.dtype.is_complex or (window is not None and window.dtype.is_complex))
    onesided = real if onesided is None else onesided
    if onesided and not real:
        raise RuntimeError(
            "Cannot have onesided output if window or input is complex, as the spectrum is not "
            "symmetric; give onesided=False"
        )
    if return_complex is None:
        return_complex = not real
    if center:
        x = _extended(x, n_fft // 2, pad_mode)
    if not 0 < n_fft <= x._a.shape[-1]:
        raise RuntimeError(
            f"stft: expected 0 < n_fft <= {x._a.shape[-1]}, the length of the signal, but got "
            f"n_fft={n_fft}"
        )
    shape, stride, offset = geometry_of(x)
    count, step = (shape[-1] - n_fft) // hop + 1, stride[-1]
    moves = (*stride[:-1], step * hop, step)
    frames = as_strided(x, (*shape[:-1], count, n_fft), moves, offset)
    if window is not None or length != n_fft:
        frames = frames * _centred(x, window, length, n_fft)
    scale = n_fft**-0.5 if normalized else 1.0
    last = frames.dim() - 1
    if onesided:
        found = _fft_r2c.run(frames, last, scale)
    else:
        found = _fft_c2c.run(frames, (last,), True, scale)
    found = found.transpose(-2, -1)
    return found if return_complex else view_as_real(found)


@public
@takes_as_annotated
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose `stft` with the same arguments is nearest to `input` in least squares.

    Frames are transformed back, weighted, added where they overlap, and divided by the sum of the
    squared windows (Griffin & Lim, 1984).

    Args:
        input: complex, (frequencies, frames) or with a batch dimension before.
        length: the length of the signal; by default what the frames cover.
        return_complex: a complex signal, from all frequencies.

    Raises:
        RuntimeError: an argument does not fit, or the squared windows add up to zero somewhere.

    >>> import flambeau as fb
    >>> x = fb.arange(8.0)
    >>> fb.istft(fb.stft(x, 4, return_complex=True), 4, length=8).round()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    z = need_tensor(input, "istft", "input")
    if not z.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            f"return_complex=True, but got {z.dtype}; pairs become complex by view_as_complex"
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    ok = z.dim() in (2, 3) and z.numel() > 0
    _check_frames("istft", z, ok, n_fft, hop, width, window)
    have = z._a.shape[-2]
    onesided = (have != n_fft) if onesided is None else onesided
    if have != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            f"istft: expected {n_fft // 2 + 1 if onesided else n_fft} frequencies for "
            f"n_fft={n_fft} and onesided={onesided}, but got shape {list(z._a.shape)}"
        )
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided output if window or input is complex")
    scale = n_fft**-0.5 if normalized else 1 / n_fft
    z = z.transpose(-2, -1)
    last, count = z.dim() - 1, z._a.shape[-2]
    if return_complex:
        frames = _fft_c2c.run(z, (last,), False, scale)
    else:
        frames = _fft_c2r.run(z.narrow(-1, 0, n_fft // 2 + 1), last, n_fft, scale)
    weights = _centred(frames, window, width, n_fft)
    total = n_fft + hop * (count - 1)
    signal = _overlapped(frames * weights, hop, total)
    envelope = _overlapped((weights * weights).expand((count, n_fft)), hop, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    signal, envelope = (t[..., start : min(end, total)] for t in (signal, envelope))
    if envelope.numel() and float(envelope.detach().abs().min().item()) < 1e-11:
        raise RuntimeError(
            "window overlap add min: 1: the squared windows add up to zero somewhere; choose a "
            "window and a hop_length that cover the signal"
        )
    signal = signal / envelope
    if end > total:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail."
        )

        signal = cat([signal, signal.new_zeros((*signal._a.shape[:-1], end - total))], -1)
    return signal


def _check_frames(
    name: str, x: Tensor, fits: bool, n_fft: int, hop: int, length: int, window: Tensor | None
) -> None:
    if not x.dtype.fp or not fits:
        raise RuntimeError(
            f"{name}: expected a floating or complex signal, alone or in a batch, but got "
            f"{x.dtype} of shape {list(x._a.shape)}"
        )
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(
            f"{name}: expected 0 < win_length <= n_fft, but got win_length={length}, n_fft={n_fft}"
        )
    if window is not None and tuple(window._a.shape) != (length,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, but got "
            f"window with size {list(window._a.shape)}"
        )


def _centred(like: Tensor, window: Tensor | None, length: int, n_fft: int) -> Tensor:
    """The window with zeros on both sides up to `n_fft` elements."""
    if window is None:
        window = like.new_ones((length,), dtype=like.dtype.to_real())
    left = (n_fft - length) // 2
    if length == n_fft:
        return window
    return cat([window.new_zeros((left,)), window, window.new_zeros((n_fft - length - left,))])


def _extended(x: Tensor, by: int, mode: str) -> Tensor:
    """The last dimension longer by `by` elements at both ends."""
    n = x._a.shape[-1]
    if mode == "constant":
        zeros = x.new_zeros((*x._a.shape[:-1], by))
        return cat([zeros, x, zeros], -1)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if by >= n if mode == "reflect" else by > n and mode == "circular":
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but "
            f"got: padding ({by}, {by}) at dimension {x.dim() - 1} of input {list(x._a.shape)}"
        )
    places = arange(-by, n + by, device=x.device)
    if mode == "reflect":
        places = (n - 1) - ((n - 1) - places.abs()).abs()
    else:
        places = places.clamp(0, n - 1) if mode == "replicate" else places % n
    return x.index_select(-1, places)


def _overlapped(frames: Tensor, hop: int, total: int) -> Tensor:
    """Frames (..., count, n) added at multiples of `hop` into (..., total)."""
    *batch, count, n = frames._a.shape
    starts = arange(count, device=frames.device).reshape((count, 1)) * hop
    places = (starts + arange(n, device=frames.device)).reshape((-1,))
    flat = frames.reshape((*batch, count * n))
    return frames.new_zeros((*batch, total)).index_add(-1, places, flat)

"""Fourier transforms agree with PyTorch; the functions of 1.0 agree with today's equivalents."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from complex_numbers import assert_close, check, plain  # noqa: E402

# PyTorch's advice, which it gives once in a process: to whichever test comes first.
pytestmark = pytest.mark.filterwarnings("ignore:A window was not provided")

NORMS = (None, "backward", "ortho", "forward")
C, R = ((3, 4, 5), "c"), ((3, 4, 5), "r")
KINDS = {
    **dict.fromkeys(("fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "hfft2"), C),
    **dict.fromkeys(("fftn", "ifftn", "irfftn", "hfftn"), C),
    **dict.fromkeys(("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn"), R),
}
LINES = [name for name in KINDS if name.endswith("fft")]
PLANES = [name for name in KINDS if name.endswith("2")]
SPACES = [name for name in KINDS if name.endswith("n")]


def arguments() -> list[Any]:
    found: list[tuple[str, dict[str, Any]]] = []
    for name in LINES:
        found += [(name, {"norm": norm}) for norm in NORMS]
        found += [(name, {"n": n, "dim": d}) for n, d in ((3, -1), (8, 0), (5, 1), (1, 2))]
    for name in PLANES:
        found += [(name, {}), (name, {"s": (3, 6), "dim": (0, -1), "norm": "ortho"})]
    for name in SPACES:
        found += [(name, {"norm": norm}) for norm in NORMS]
        found += [
            (name, {"s": (3, 4)}),
            (name, {"s": (-1, 7), "dim": (2, 0)}),
            (name, {"dim": 1}),
            (name, {"dim": (1,), "norm": "forward"}),
        ]
    return [pytest.param(n, k, id=f"{n}-{'-'.join(map(str, k.values()))}") for n, k in found]


@pytest.mark.parametrize(("name", "options"), arguments())
def test_values_and_both_derivatives_agree(name: str, options: dict[str, Any]) -> None:
    check(lambda t, x: getattr(t.fft, name)(x, **options), [KINDS[name]])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int64", "bool"]
)
def test_dtypes_are_promoted_as_in_pytorch(name: str, dtype: str) -> None:
    data = [[1, 0, 2, 1], [0, 1, 1, 3]]
    found = []
    for t in (fb, torch):
        x = t.tensor(data).to(getattr(t, dtype))
        try:
            found.append(getattr(t.fft, name)(x))
        except RuntimeError as error:
            found.append(error)
    if isinstance(found[1], RuntimeError):
        assert isinstance(found[0], RuntimeError)
    else:
        assert_close(*found, 1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_the_decompositions_agree_on_a_device_without_kernels(name: str) -> None:
    ours = fb.arange(24, dtype=fb.float64, device="ref").reshape(2, 3, 4).sin()
    theirs = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4).sin()
    assert_close(getattr(fb.fft, name)(ours), getattr(torch.fft, name)(theirs))


def test_out_takes_the_result() -> None:
    x, out = fb.arange(4.0), fb.empty(0, dtype=fb.complex64)
    assert fb.fft.fft(x, out=out) is out
    assert out.tolist() == fb.fft.fft(x).tolist()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts_agree(n: int) -> None:
    for t_name in ("fftfreq", "rfftfreq"):
        assert_close(getattr(fb.fft, t_name)(n, 0.3), getattr(torch.fft, t_name)(n, 0.3), 1e-6)
        assert_close(
            getattr(fb.fft, t_name)(n, dtype=fb.float64),
            getattr(torch.fft, t_name)(n, dtype=torch.float64),
        )
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (0, -1)):
            ours = getattr(fb.fft, name)(fb.arange(3 * n).reshape(3, n), dim)
            theirs = getattr(torch.fft, name)(torch.arange(3 * n).reshape(3, n), dim)
            assert_close(ours, theirs)


ERRORS: dict[str, Callable[[Any], Any]] = {
    "half": lambda t: t.fft.fft(t.ones(4, dtype=t.float16)),
    "no points": lambda t: t.fft.fft(t.ones(4), n=0),
    "empty": lambda t: t.fft.fft(t.ones(0)),
    "default of irfft": lambda t: t.fft.irfft(t.ones(1)),
    "norm": lambda t: t.fft.fft(t.ones(4), norm="other"),
    "dim": lambda t: t.fft.fft(t.ones(4), dim=1),
    "scalar": lambda t: t.fft.fft(t.ones(())),
    "rfft of complex": lambda t: t.fft.rfft(t.ones(4, dtype=t.complex64)),
    "dims twice": lambda t: t.fft.fftn(t.ones(4, 4), dim=(0, -2)),
    "lengths": lambda t: t.fft.fftn(t.ones(4, 4), s=(2,), dim=(0, 1)),
    "too many sizes": lambda t: t.fft.fftn(t.ones(4), s=(2, 2)),
    "no dims": lambda t: t.fft.rfftn(t.ones(4), dim=()),
    "fftfreq of integers": lambda t: t.fft.fftfreq(4, dtype=t.int64),
    "stft too short": lambda t: t.stft(t.ones(4), 16, return_complex=True),
    "stft hop": lambda t: t.stft(t.ones(16), 4, hop_length=0, return_complex=True),
    "stft window": lambda t: t.stft(t.ones(16), 4, window=t.ones(5), return_complex=True),
    "stft window length": lambda t: t.stft(t.ones(16), 4, win_length=5, return_complex=True),
    "stft of integers": lambda t: t.stft(t.ones(16).long(), 4, return_complex=True),
    "istft of real": lambda t: t.istft(t.ones(3, 4, 2), 4),
    "istft frequencies": lambda t: t.istft(t.ones(4, 4, dtype=t.complex64), 4, onesided=True),
    "istft gaps": lambda t: t.istft(
        t.ones(3, 4, dtype=t.complex64), 4, hop_length=4, window=t.tensor([0.0, 1, 1, 0])
    ),
    "hann of integers": lambda t: t.hann_window(3, dtype=t.int64),
    "negative window": lambda t: t.hann_window(-1),
}


@pytest.mark.parametrize("name", ERRORS)
def test_both_raise_the_same_class(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - the class is what is compared
        ERRORS[name](torch)
    with pytest.raises(type(theirs.value)):
        ERRORS[name](fb)


def pairs(z: Any) -> Any:
    return torch.view_as_real(torch.resolve_conj(z))


def ours_of(x: Any) -> Any:
    return fb.tensor(plain(x), dtype=fb.float64).reshape(tuple(x.shape))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_transforms_of_pairs_are_those_of_complex_numbers(ndim: int, normalized: bool) -> None:
    z = torch.randn(2, 3, 4, 5, dtype=torch.complex128)
    dims, norm = tuple(range(-ndim, 0)), "ortho" if normalized else None
    x = ours_of(pairs(z))
    forward = pairs(torch.fft.fftn(z, dim=dims, norm=norm))
    inverse = pairs(torch.fft.ifftn(z, dim=dims, norm=norm))
    assert_close(fb.fft(x, ndim, normalized), forward)
    assert_close(x.fft(ndim, normalized), forward)
    assert_close(fb.ifft(x, ndim, normalized), inverse)
    assert_close(x.ifft(ndim, normalized), inverse)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_real_transforms_and_their_inverses(ndim: int, onesided: bool, normalized: bool) -> None:
    signal = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    dims, norm = tuple(range(-ndim, 0)), "ortho" if normalized else None
    theirs = (torch.fft.rfftn if onesided else torch.fft.fftn)(signal, dim=dims, norm=norm)
    ours = fb.rfft(ours_of(signal), ndim, normalized, onesided)
    assert_close(ours, pairs(theirs))
    back = fb.irfft(ours, ndim, normalized, onesided, signal_sizes=signal.shape[4 - ndim :])
    assert_close(back, signal)
    assert_close(ours.irfft(ndim, normalized, onesided, signal.shape[4 - ndim :]), signal)


def test_the_default_size_of_irfft_is_even() -> None:
    assert fb.irfft(fb.ones(3, 2), 1).shape == (4,)
    assert fb.irfft(fb.ones(3, 2), 1, onesided=False).shape == (3,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.fft(fb.ones(4), 1),
        lambda: fb.fft(fb.ones(4, 3), 1),
        lambda: fb.fft(fb.ones(4, 2).long(), 1),
        lambda: fb.fft(fb.ones(4, 2), 4),
        lambda: fb.rfft(fb.ones(4), 2),
        lambda: fb.irfft(fb.ones(3, 2), 1, signal_sizes=(7,)),
    ],
)
def test_what_does_not_fit_is_refused(call: Any) -> None:
    with pytest.raises(RuntimeError):
        call()


def test_the_module_is_a_function_and_a_module() -> None:
    module = importlib.import_module("flambeau.fft")
    assert fb.fft is module and callable(module)
    assert pickle.loads(pickle.dumps(module.fft)) is module.fft
    assert copy.copy(module.fft) is module.fft
    assert set(torch.fft.__all__) - {"Tensor"} <= set(module.__all__)


STFT: dict[str, dict[str, Any]] = {
    "default": {},
    "hop": {"hop_length": 3},
    "not centred": {"center": False},
    "constant": {"pad_mode": "constant"},
    "replicate": {"pad_mode": "replicate"},
    "circular": {"pad_mode": "circular"},
    "normalized": {"normalized": True},
    "two-sided": {"onesided": False},
    "odd": {"n_fft": 5},
    "short window": {"win_length": 5},
}


@pytest.mark.parametrize("name", STFT)
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("shape", [(23,), (2, 23)])
def test_stft_agrees(name: str, windowed: bool, shape: tuple[int, ...]) -> None:
    options = {"n_fft": 8, **STFT[name]}
    width = options.get("win_length", options["n_fft"])

    def call(t: Any, x: Any) -> Any:
        window = t.hann_window(width, dtype=t.float64) + 0.1 if windowed else None
        return t.stft(x, window=window, return_complex=True, **options)

    check(call, [(shape, "r")])


def test_stft_of_complex_signals_and_of_trained_windows_agrees() -> None:
    check(lambda t, x: t.stft(x, 8, return_complex=True), [((2, 23), "c")])
    check(lambda t, x, w: t.stft(x, 8, window=w, return_complex=True), [((23,), "r"), ((8,), "r")])


def test_stft_without_return_complex_gives_pairs_as_in_1_0() -> None:
    x = torch.randn(23, dtype=torch.float64)
    z = torch.stft(x, 8, 2, return_complex=True)
    assert_close(ours_of(x).stft(8, 2), torch.view_as_real(z))
    assert_close(fb.stft(ours_of(x), 8, 2, None, None, True, "reflect", False, True), pairs(z))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("length", [None, 20, 40])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.filterwarnings("ignore:The length of signal is shorter")
def test_istft_agrees(center: bool, length: int | None, normalized: bool) -> None:
    def call(t: Any, z: Any) -> Any:
        window = t.hamming_window(8, dtype=t.float64)
        return t.istft(z, 8, 3, None, window, center, normalized, length=length)

    check(call, [((2, 5, 9), "c")])


def test_istft_of_all_frequencies_agrees() -> None:
    check(lambda t, z: t.istft(z, 6, 2, onesided=False), [((6, 7), "c")])
    check(lambda t, z: t.istft(z, 6, 2, onesided=False, return_complex=True), [((6, 7), "c")])
    check(lambda t, z: z.istft(6, 2, 4), [((4, 7), "c")])


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_agree(name: str, n: int, periodic: bool) -> None:
    name += "_window"
    assert_close(getattr(fb, name)(n, periodic), getattr(torch, name)(n, periodic), 2e-6)
    ours = getattr(fb, name)(n, periodic=periodic, dtype=fb.float64, requires_grad=True)
    theirs = getattr(torch, name)(n, periodic=periodic, dtype=torch.float64, requires_grad=True)
    assert_close(ours, theirs)
    assert ours.requires_grad


def test_window_parameters_agree() -> None:
    options = (True, 0.6, 0.3)
    assert_close(fb.hamming_window(6, *options), torch.hamming_window(6, *options), 1e-6)
    assert_close(fb.kaiser_window(6, beta=3.0), torch.kaiser_window(6, True, 3.0), 1e-6)


NAMES = sorted(torch.signal.windows.__all__)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "exponential": [{"tau": 2.5}, {"sym": False, "center": 1.0}],
    "gaussian": [{"std": 2.5}],
    "general_cosine": [{"a": [0.2, 0.3, 0.5]}],
    "general_hamming": [{"alpha": 0.3}],
    "kaiser": [{"beta": 3.0}],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
def test_windows_of_the_signal_module_agree(name: str, count: int) -> None:
    defaults: list[dict[str, Any]] = [{}, {"sym": False}] if name != "general_cosine" else []
    for options in [*defaults, *OPTIONS.get(name, [])]:
        ours = getattr(fb.signal.windows, name)(count, **options, dtype=fb.float64)
        theirs = getattr(torch.signal.windows, name)(count, **options, dtype=torch.float64)
        assert_close(ours, theirs)
    assert set(NAMES) == set(fb.signal.windows.__all__)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.signal.windows.hann(-1),
        lambda t: t.signal.windows.hann(3, dtype=t.float16),
        lambda t: t.signal.windows.gaussian(3, std=0.0),
        lambda t: t.signal.windows.exponential(3, tau=0.0),
        lambda t: t.signal.windows.exponential(3, center=1.0),
        lambda t: t.signal.windows.kaiser(3, beta=-1.0),
        lambda t: t.signal.windows.general_cosine(3, a=[]),
    ],
)
def test_windows_of_the_signal_module_refuse_what_pytorch_refuses(call: Any) -> None:
    for t in (torch, fb):
        with pytest.raises(ValueError, match=r".+"):
            call(t)

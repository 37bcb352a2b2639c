"""Recurrent layers by cuDNN: on functions made for tests, and descriptors by the real library."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import re
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from planned import served
from test_ops import agree, numbers

import flambeau as fb
from flambeau.plugin import numerics
from flambeau_cupy.dtypes import BFLOAT16, FLOAT16
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.libraries import recurrences
from flambeau_cupy.libraries.recurrences import GATES, Recurrences, Signature, Stack

HANDLE = 77
KINDS = {number: kind for kind, number in recurrences.DATA_TYPES.items()}
MODES = {number: mode for mode, number in recurrences.MODES.items()}
WORKSPACE = 40


def memory(address, shape, kind):
    """The array at an address."""
    size = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), kind).reshape(shape)


class Functions:
    """cuDNN's functions, on the host: descriptors are numbers, arguments are checked.

    Weights lie in an order of its own: biases first, then the recurrent matrices, the last gate
    first and something between them, then the others, whose gates are neighbours.
    """

    def __init__(self):
        self.numbers, self.known, self.calls, self.kept = count(1), {}, [], {}
        self.refuses = False

    def __getattr__(self, name):
        """Functions that create and destroy a kind of descriptor."""
        found = re.fullmatch("cudnn(Create|Destroy)(RNN|RNNData|Tensor|Dropout)Descriptor", name)
        if found is None:
            raise AttributeError(name)

        def create(out):
            out._obj.value = number = next(self.numbers)
            self.known[number] = SimpleNamespace(kind=found[2])
            return 0

        def destroy(number):
            assert self.known.pop(number).kind == found[2]
            return 0

        return create if found[1] == "Create" else destroy

    def _of(self, number, kind):
        known = self.known[number]
        assert known.kind == kind
        return known

    def cudnnSetDropoutDescriptor(self, number, handle, p, states, size, seed):
        assert (handle, p, states, size) == (HANDLE, 0.0, None, 0)
        self._of(number, "Dropout").p = p
        return 0

    def cudnnSetRNNDescriptor_v8(
        self, number, algo, mode, bias, direction, input_mode, kind, precision, math, width, hidden,
        projected, layers, dropout, flags,
    ):  # fmt: skip
        if self.refuses:
            return recurrences.NOT_SUPPORTED
        assert algo == recurrences.ALGO_STANDARD and input_mode == recurrences.LINEAR_INPUT
        assert self._of(dropout, "Dropout").p == 0 and 0 < projected <= hidden
        self._of(number, "RNN").__dict__.update(
            mode=MODES[mode], biased=bias, directions=direction + 1, number=kind, math=math,
            precision=precision, width=width, hidden=hidden, output=projected, layers=layers,
            flags=flags,
        )  # fmt: skip
        assert bias in (recurrences.NO_BIAS, recurrences.DOUBLE_BIAS)
        return 0

    def cudnnSetTensorNdDescriptor(self, number, kind, rank, sizes, steps):
        shape = list(sizes)
        assert rank == len(shape) == len(steps) == 3
        assert list(steps) == [shape[1] * shape[2], shape[2], 1]
        self._of(number, "Tensor").__dict__.update(number=kind, shape=shape)
        return 0

    def cudnnGetTensorNdDescriptor(self, number, wanted, kind, rank, sizes, steps):
        shape = self._of(number, "Tensor").shape
        rank._obj.value, sizes[:] = wanted, shape
        return 0

    def cudnnSetRNNDataDescriptor(
        self, number, kind, layout, steps, batch, width, lengths, filling
    ):
        lengths = list(lengths)
        assert len(lengths) == batch and max(lengths) == steps and filling is None
        if layout == recurrences.PACKED:
            assert all(a >= b for a, b in pairwise(lengths))
        else:
            assert set(lengths) == {steps}
        self._of(number, "RNNData").__dict__.update(
            number=kind, layout=layout, lengths=lengths, width=width
        )
        return 0

    def _layout(self, rnn):
        """Offset and shape of every matrix and bias, by (layer, matrix, whether it is a bias)."""
        gates, found, at = GATES[rnn.mode], {}, 5

        def put(key, shape, gap):
            nonlocal at
            found[key] = at, shape
            at += int(np.prod(shape)) + gap

        for layer in range(rnn.layers * rnn.directions):
            width = rnn.width if layer < rnn.directions else rnn.output * rnn.directions
            for matrix in range(2 * gates if rnn.biased else 0):
                put((layer, matrix, True), (rnn.hidden,), 0)
            for matrix in reversed(range(gates, 2 * gates)):
                put((layer, matrix, False), (rnn.hidden, rnn.output), 2)
            for matrix in range(gates):
                put((layer, matrix, False), (rnn.hidden, width), 0)
            if rnn.output < rnn.hidden:
                put((layer, 8, False), (rnn.output, rnn.hidden), 1)
        return found, at

    def _size(self, rnn):
        return self._layout(rnn)[1] * KINDS[rnn.number].itemsize

    def cudnnGetRNNWeightSpaceSize(self, handle, rnn, out):
        assert handle == HANDLE
        out._obj.value = self._size(self._of(rnn, "RNN"))
        return 0

    def cudnnGetRNNWeightParams(
        self, handle, number, layer, size, base, matrix, m_desc, m_at, b_desc, b_at
    ):
        rnn = self._of(number, "RNN")
        assert handle == HANDLE and size == self._size(rnn) and base
        layout, _ = self._layout(rnn)
        for bias, desc, at in ((False, m_desc, m_at), (True, b_desc, b_at)):
            if (layer, matrix, bias) not in layout:
                at._obj.value = None
                continue
            offset, shape = layout[layer, matrix, bias]
            at._obj.value = base + offset * KINDS[rnn.number].itemsize
            self._of(desc, "Tensor").shape = [1, *shape, *(1,) * (2 - len(shape))]
        return 0

    def _params(self, rnn, space, shared):
        """The parameters in the order of the op, views of the memory of all weights."""
        layout, gates, found = self._layout(rnn)[0], GATES[rnn.mode], []
        for layer in range(rnn.layers * rnn.directions):
            for bias in (False, True) if rnn.biased else (False,):
                for first in (0, gates):
                    keys = [(layer, m, bias) for m in range(first, first + gates)]
                    found.append([self._view(space, *layout[key]) for key in keys])
            if rnn.output < rnn.hidden:
                found.append([self._view(space, *layout[layer, 8, False])])
        return found if shared else [np.concatenate(parts) for parts in found]

    def _view(self, space, offset, shape):
        return space[offset : offset + int(np.prod(shape))].reshape(shape)

    def _sizes(self, rnn, data):
        known = self._of(data, "RNNData")
        assert known.number == rnn.number
        packed = known.layout == recurrences.PACKED
        assert rnn.flags == (0 if packed else recurrences.PADDED_IO)
        steps = range(max(known.lengths))
        return known, [sum(n > t for n in known.lengths) for t in steps]

    def cudnnGetRNNTempSpaceSizes(self, handle, rnn, mode, data, workspace, reserve):
        assert handle == HANDLE and self._of(rnn, "RNN") and self._of(data, "RNNData")
        workspace._obj.value = WORKSPACE
        if mode == recurrences.TRAINING:
            reserve._obj.value = 33
        return 0

    def _state(self, rnn, number, width, batch, address):
        known = self._of(number, "Tensor")
        shape = [rnn.layers * rnn.directions, batch, width]
        assert known.shape == shape and known.number == rnn.number
        return None if not address else memory(address, shape, KINDS[rnn.number])

    def cudnnRNNForward(
        self, handle, number, mode, lengths, x_desc, x, y_desc, y, h_desc, hx, hy, c_desc, cx, cy,
        size, weights, workspace_size, workspace, reserve_size, reserve,
    ):  # fmt: skip
        rnn = self._of(number, "RNN")
        kind = KINDS[rnn.number]
        self.calls.append(("forward", rnn, mode))
        assert handle == HANDLE and lengths is None and size == self._size(rnn)
        assert workspace_size == WORKSPACE and workspace
        x_known, sizes = self._sizes(rnn, x_desc)
        y_known, y_sizes = self._sizes(rnn, y_desc)
        rows, batch = sum(sizes), sizes[0]
        assert (x_known.width, y_known.width) == (rnn.width, rnn.output * rnn.directions)
        assert sizes == y_sizes
        inputs = memory(x, (rows, rnn.width), kind).copy()
        h = self._state(rnn, h_desc, rnn.output, batch, hx).copy()
        c = None
        if rnn.mode == "lstm":
            c = self._state(rnn, c_desc, rnn.hidden, batch, cx).copy()
        else:
            assert c_desc is cx is cy is None
        space = memory(weights, (size // kind.itemsize,), kind)
        params = self._params(rnn, space, False)
        given = inputs, h, c, params, sizes
        output, *finals = run(rnn, *(wide(a) for a in given[:4]), sizes)
        memory(y, (rows, y_known.width), kind)[...] = output.numpy()
        self._state(rnn, h_desc, rnn.output, batch, hy)[...] = finals[0].numpy()
        if c is not None:
            self._state(rnn, c_desc, rnn.hidden, batch, cy)[...] = finals[1].numpy()
        if mode == recurrences.TRAINING:
            assert reserve_size == 33 and reserve
            stamp = hashlib.sha256(memory(y, (rows, y_known.width), kind).tobytes()).digest()
            self.kept[stamp] = given
            memory(reserve, (33,), np.dtype(np.uint8))[...] = [*stamp, 0]
        else:
            assert reserve_size == 0 and not reserve
        return 0

    def cudnnRNNBackwardData_v8(
        self, handle, number, lengths, y_desc, y, dy, x_desc, dx, h_desc, hx, dhy, dhx, c_desc, cx,
        dcy, dcx, size, weights, workspace_size, workspace, reserve_size, reserve,
    ):  # fmt: skip
        rnn = self._of(number, "RNN")
        kind = KINDS[rnn.number]
        self.calls.append(("data", rnn, None))
        _, sizes = self._sizes(rnn, x_desc)
        y_known, _ = self._sizes(rnn, y_desc)
        rows, batch = sum(sizes), sizes[0]
        assert handle == HANDLE and lengths is None and size == self._size(rnn) and weights
        assert reserve_size == 33 and workspace_size == WORKSPACE
        kept = memory(reserve, (33,), np.dtype(np.uint8))
        assert kept[-1] == 0, "a pass that was here before has written to it"
        y = memory(y, (rows, y_known.width), kind)
        inputs, h, c, params, _ = self.kept[hashlib.sha256(y.tobytes()).digest()]
        assert (self._state(rnn, h_desc, rnn.output, batch, hx) == h).all()
        leaves = [wide(a) for a in (inputs, h)] + ([] if c is None else [wide(c)]) + wide(params)
        for leaf in leaves:
            leaf.requires_grad_()
        states = len(leaves) - len(params)
        cell = leaves[2] if c is not None else None
        with fb.enable_grad():
            found = run(rnn, leaves[0], leaves[1], cell, leaves[states:], sizes)
        overs = [memory(dy, (rows, y_known.width), kind)]
        overs.append(self._state(rnn, h_desc, rnn.output, batch, dhy))
        if c is not None:
            overs.append(self._state(rnn, c_desc, rnn.hidden, batch, dcy))
        else:
            assert c_desc is cx is dcy is dcx is None
        pairs = [(r, wide(o)) for r, o in zip(found, overs, strict=True) if o is not None]
        grads = fb.autograd.grad([r for r, _ in pairs], leaves, [o for _, o in pairs])
        memory(dx, (rows, rnn.width), kind)[...] = grads[0].numpy()
        self._state(rnn, h_desc, rnn.output, batch, dhx)[...] = grads[1].numpy()
        if c is not None:
            self._state(rnn, c_desc, rnn.hidden, batch, dcx)[...] = grads[2].numpy()
        kept[-1] = 1
        self.over_weights = workspace, reserve, [g.numpy() for g in grads[states:]]
        return 0

    def cudnnRNNBackwardWeights_v8(
        self, handle, number, add, lengths, x_desc, x, h_desc, hx, y_desc, y, size, weights,
        workspace_size, workspace, reserve_size, reserve,
    ):  # fmt: skip
        rnn = self._of(number, "RNN")
        kind = KINDS[rnn.number]
        self.calls.append(("weights", rnn, None))
        assert handle == HANDLE and add == recurrences.ADD and lengths is None
        assert (workspace, reserve) == self.over_weights[:2]
        assert (workspace_size, reserve_size, size) == (WORKSPACE, 33, self._size(rnn))
        assert memory(reserve, (33,), np.dtype(np.uint8))[-1] == 1
        _, sizes = self._sizes(rnn, x_desc)
        y = memory(y, (sum(sizes), rnn.output * rnn.directions), kind)
        inputs, h, *_ = self.kept[hashlib.sha256(y.tobytes()).digest()]
        assert (memory(x, inputs.shape, kind) == inputs).all()
        assert (self._state(rnn, h_desc, rnn.output, sizes[0], hx) == h).all()
        space = memory(weights, (size // kind.itemsize,), kind)
        for parts, grad in zip(self._params(rnn, space, True), self.over_weights[2], strict=True):
            start = 0
            for part in parts:
                part += grad[start : start + len(part)].astype(kind)  # what was there stays
                start += len(part)
        return 0


def wide(a):
    """An array, or several, as tensors of float64 on the CPU."""
    if a is None:
        return None
    return [wide(x) for x in a] if isinstance(a, list) else fb.tensor(a.astype(np.float64))


def run(rnn, x, h, c, params, sizes):
    """The definition, on the CPU."""
    function = {"lstm": fb.lstm, "gru": fb.gru, "tanh": fb.rnn_tanh, "relu": fb.rnn_relu}[rnn.mode]
    state = h if c is None else (h, c)
    settings = params, bool(rnn.biased), rnn.layers, 0.0, False, rnn.directions == 2
    return function(x, fb.tensor(sizes), state, *settings)


class Runtime:
    version, index, major = 91900, 0, 9

    def __init__(self):
        self.library = Functions()

    def handle(self):
        return HANDLE

    def device(self):
        return self.index

    def capability(self):
        return self.major


@pytest.fixture(scope="module")
def device():
    yield from served(lambda layer: [Recurrences(layer, Runtime)])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    for name in ("enabled", "deterministic", "convolution_tf32"):
        monkeypatch.setattr(numerics, name, getattr(numerics, name))


@pytest.fixture
def library(device):
    from flambeau._dispatch.bound import bind

    found = bind(device).backend.libraries[0]
    found.stacks.clear()
    found._batch.cache_clear()
    runtime = found.runtime()
    runtime.library.calls.clear()
    runtime.version, runtime.major, runtime.library.refuses = 91900, 9, False
    return found


def calls(library):
    """How many forward passes, and passes for the gradients of data and of weights, there were."""
    made = [call[0] for call in library.runtime().library.calls]
    return tuple(made.count(name) for name in ("forward", "data", "weights"))


RAGGED, EVEN = (3, 3, 2, 1), (3, 3, 3)
HIDDEN, WIDTH = 4, 5


def operands(mode, layers=1, both=False, biased=True, projected=False, sizes=EVEN):
    """Input, states and parameters as float64 tensors."""
    out = 2 if projected else HIDDEN
    s = Signature(
        mode, WIDTH, HIDDEN, out, layers, both, biased, np.dtype(np.float64), True, False, 0
    )
    states = layers * s.directions, sizes[0]
    shapes = [(sum(sizes), WIDTH), (*states, out)]
    shapes += [(*states, HIDDEN)] if mode == "lstm" else []
    return [numbers(*shape, seed=i) / 2 for i, shape in enumerate([*shapes, *s.shapes()])]


def layers_of(mode, layers=1, both=False, biased=True, sizes=EVEN, dropout=0.0, train=False):
    """The public function on packed rows, of input, states and parameters."""
    function = {"lstm": fb.lstm, "gru": fb.gru, "tanh": fb.rnn_tanh, "relu": fb.rnn_relu}[mode]

    def run(x, h, *rest):
        state = (h, rest[0]) if mode == "lstm" else h
        params = list(rest[mode == "lstm" :])
        settings = params, biased, layers, dropout, train, both
        return function(x, fb.tensor(sizes), state, *settings)

    return run


def close(options, dtype, device, **others):
    agree(layers_of(**options), operands(**options, **others), dtype, device)


FORMS = [
    {},
    {"both": True},
    {"layers": 2},
    {"layers": 2, "both": True, "biased": False},
    {"sizes": RAGGED},
    {"sizes": RAGGED, "layers": 3, "both": True},
    {"sizes": (1,)},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("mode", GATES)
def test_both_passes_are_those_of_the_definition(mode, form, device, library):
    for dtype in (fb.float64, fb.float32):
        close({"mode": mode, **form}, dtype, device)
    assert calls(library) == (2, 2, 2)


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16])
def test_halves(dtype, device, library):
    for mode in GATES:
        close({"mode": mode, "layers": 2, "both": True, "sizes": RAGGED}, dtype, device)
    assert calls(library) == (4, 4, 4)


@pytest.mark.parametrize("biased", [False, True])
def test_projections(biased, device, library):
    for both, sizes in ((False, EVEN), (True, RAGGED)):
        options = {"mode": "lstm", "layers": 2, "both": both, "biased": biased, "sizes": sizes}
        close(options, fb.float64, device, projected=True)
    assert calls(library) == (2, 2, 2)


def test_modules_and_packed_sequences_come_here(device, library):
    from flambeau.nn.utils.rnn import pack_sequence, pad_packed_sequence

    fb.manual_seed(0)
    for kind in (fb.nn.LSTM, fb.nn.GRU, fb.nn.RNN):
        there, here = kind(5, 4, 2, bidirectional=True, batch_first=True), None
        here = kind(5, 4, 2, bidirectional=True, batch_first=True).to(device)
        here.load_state_dict(there.state_dict())
        x = fb.randn(3, 6, 5)
        fb.testing.assert_close(here(x.to(device))[0].to("cpu"), there(x)[0], rtol=1e-5, atol=1e-6)
        parts = [fb.randn(n, 5) for n in (4, 3, 1)]
        both = [
            pad_packed_sequence(m(pack_sequence([p.to(where) for p in parts]))[0])[0].to("cpu")
            for m, where in ((here, device), (there, "cpu"))
        ]
        fb.testing.assert_close(*both, rtol=1e-5, atol=1e-6)
    assert calls(library) == (6, 0, 0)


def test_what_the_forward_pass_keeps_depends_on_whether_a_gradient_may_come(device, library):
    args = [t.to(device, fb.float32) for t in operands("gru")]
    layers = layers_of("gru")
    layers(*args)
    with fb.no_grad():
        layers(args[0].requires_grad_(), *args[1:])
    layers(*args)
    modes = [mode for _, _, mode in library.runtime().library.calls]
    assert modes == [recurrences.INFERENCE, recurrences.INFERENCE, recurrences.TRAINING]


def test_a_backward_pass_without_what_is_kept_makes_it_again(device, library):
    from flambeau.ops import OPS

    x, h, *params = (t.to(device, fb.float32).requires_grad_() for t in operands("gru"))
    settings = None, params, "gru", 1, False, EVEN
    found = [
        fb.autograd.grad(OPS["recurrent_layers"](x, h, *settings, saves)[0].sum(), [x, *params])
        for saves in (False, True)
    ]
    for a, b in zip(*found, strict=True):
        fb.testing.assert_close(a, b, rtol=0, atol=0)
    assert calls(library) == (3, 2, 2)


def test_a_second_backward_pass_finds_what_was_kept_as_it_was(device, library):
    args = [t.to(device, fb.float32).requires_grad_() for t in operands("lstm", sizes=RAGGED)]
    total = sum(t.sum() for t in layers_of("lstm", sizes=RAGGED)(*args))
    first = fb.autograd.grad(total, args, retain_graph=True)
    for a, b in zip(first, fb.autograd.grad(total, args), strict=True):
        fb.testing.assert_close(a, b, rtol=0, atol=0)
    assert calls(library) == (1, 2, 2)


def test_gradients_of_some_results_only(device, library):
    for mode, place in (("lstm", 0), ("lstm", 1), ("lstm", 2), ("gru", 1)):
        layers = layers_of(mode, 2, True)
        agree(
            lambda *args, layers=layers, place=place: layers(*args)[place],
            operands(mode, 2, True),
            fb.float64,
            device,
        )
    assert calls(library) == (4, 4, 4)


def test_second_derivatives_go_through_the_decomposition(device, library):
    def penalty(x, *rest):
        total = layers_of("lstm", 2)(x, *rest)[0].sum()
        return fb.autograd.grad(total, x, create_graph=True)[0]

    agree(penalty, operands("lstm", 2), fb.float64, device)
    assert calls(library)[1] == 1


def test_dropout_between_layers_is_ours_and_can_be_repeated(device, library):
    args = [t.to(device, fb.float32) for t in operands("lstm", 3, True)]
    found = []
    for _ in range(2):
        getattr(fb, device).manual_seed(5)
        found.append(layers_of("lstm", 3, True, dropout=0.5, train=True)(*args))
    for a, b in zip(*found, strict=True):
        fb.testing.assert_close(a, b, rtol=0, atol=0)
    assert calls(library) == (6, 0, 0)
    asked = [rnn.layers for _, rnn, _ in library.runtime().library.calls]
    assert asked == [1] * 6
    whole = layers_of("lstm", 3, True, dropout=0.5, train=False)(*args)
    assert calls(library) == (7, 0, 0)
    assert found[0][1].shape == whole[1].shape == (6, 3, HIDDEN)
    # Dropped numbers differ; those of the first layer come before any dropout.
    fb.testing.assert_close(found[0][1][:2], whole[1][:2], rtol=1e-6, atol=1e-6)
    assert not fb.equal(found[0][1][2:], whole[1][2:])
    close({"mode": "gru", "layers": 2}, fb.float64, device)


def test_switches_and_dtypes_choose_the_mathematics(device, library):
    chosen = []
    for dtype, tf32 in (
        (fb.float32, True),
        (fb.float32, False),
        (fb.float64, False),
        (fb.float16, False),
        (fb.bfloat16, True),
    ):
        numerics.convolution_tf32 = tf32
        args = [t.to(device, dtype) for t in operands("tanh")]
        layers_of("tanh")(*args)
        rnn = library.runtime().library.calls[-1][1]
        chosen.append((rnn.number, rnn.precision, rnn.math))
    assert chosen == [(0, 0, 0), (0, 0, 3), (1, 1, 0), (2, 0, 1), (9, 0, 1)]


def test_a_stack_is_made_once_per_signature_and_descriptors_are_given_back(device, library):
    functions = library.runtime().library
    args = [t.to(device, fb.float32) for t in operands("lstm", sizes=RAGGED)]
    for _ in range(3):
        layers_of("lstm", sizes=RAGGED)(*args)
    assert len(library.stacks) == 1 and library._batch.cache_info().misses == 1
    other = [t.to(device, fb.float32) for t in operands("lstm", sizes=(2, 2))]
    layers_of("lstm", sizes=(2, 2))(*other)
    library.runtime().index = 1
    try:
        layers_of("lstm", sizes=(2, 2))(*other)
    finally:
        library.runtime().index = 0
    assert len(library.stacks) == 3
    assert sorted(known.kind for known in functions.known.values()) == sorted(
        3 * ["Dropout", "RNN", "RNNData", "RNNData", "Tensor", "Tensor"]
    )
    library.stacks.clear()
    library._batch.cache_clear()
    assert not functions.known


def test_arrays_that_are_no_rows_are_copied(device, library):
    x, h, *params = (t.to(device, fb.float32) for t in operands("gru"))
    layers = layers_of("gru")
    wanted = layers(x, h, *params)
    turned = [t.mT.contiguous().mT if t.dim() > 1 else t for t in (x, h, *params)]
    assert not turned[0].is_contiguous()
    for a, b in zip(layers(*turned), wanted, strict=True):
        fb.testing.assert_close(a, b, rtol=0, atol=0)
    x, h, *params = (t.requires_grad_() for t in (x, h, *params))
    layers(x, h, *params)[0].sum().backward()  # the gradient of a sum is one number, repeated
    assert x.grad is not None and calls(library) == (3, 1, 1)


def test_what_cudnn_does_not_take_decomposes(device, library, monkeypatch):
    runtime, options = library.runtime(), {"mode": "lstm", "layers": 2, "sizes": RAGGED}
    runtime.library.refuses = True
    close(options, fb.float32, device)
    library.stacks.clear()
    runtime.library.refuses = False
    for name, value in (("version", 91200), ("major", 7)):
        monkeypatch.setattr(runtime, name, value)
        close(options, fb.bfloat16, device)
        monkeypatch.undo()
    numerics.enabled = False
    close(options, fb.float32, device)
    numerics.enabled, numerics.deterministic = True, True
    close(options, fb.float32, device)
    assert calls(library) == (0, 0, 0)
    numerics.deterministic = False
    x, _, c, *params = (t.to(device, fb.float32) for t in operands("lstm", projected=True))
    full = fb.ones(HIDDEN, HIDDEN, device=device)  # a projection to as many numbers
    wide = [*params[:1], fb.ones(4 * HIDDEN, HIDDEN, device=device), *params[2:4], full]
    layers_of("lstm")(x, fb.zeros(1, 3, HIDDEN, device=device), c, *wide)
    layers_of("gru", sizes=(0, 0))(*[t.to(device) for t in operands("gru", sizes=(0, 0))])
    assert calls(library) == (0, 0, 0)


def test_repeatable_results_need_a_workspace_of_cublas_that_is_set(device, library, monkeypatch):
    numerics.deterministic = True
    for value, passes in ((":4096:8", 0), (":16:8", 1), (":4096:2", 2)):
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", value)
        close({"mode": "gru"}, fb.float32, device)
        assert calls(library) == (passes,) * 3


def test_wrong_arguments_raise_what_they_raise_elsewhere(device, library):
    x, h, *params = (t.to(device, fb.float32) for t in operands("gru"))
    for args in (
        (x[:, :3], h, *params),
        (x, h[..., :2], *params),
        (x.double(), h, *params),
        (x, h, params[0].to("cpu"), *params[1:]),
    ):
        with pytest.raises(RuntimeError):
            layers_of("gru")(*args)
    assert calls(library) == (0, 0, 0)


def test_a_failed_call_names_function_and_status(device, library, monkeypatch):
    args = [t.to(device, fb.float32) for t in operands("gru")]
    functions = library.runtime().library
    monkeypatch.setattr(functions, "cudnnRNNForward", lambda *a: 5000, raising=False)
    with pytest.raises(RuntimeError, match="cudnnRNNForward of cuDNN 91900 .* status 5000"):
        layers_of("gru")(*args)


def test_a_machine_without_cudnn_decomposes_and_asks_once():
    asked = []

    def load():
        asked.append(1)
        raise OSError("libcudnn.so.9: cannot open shared object file")

    library = Recurrences(NumpyLayer(), load)
    x, h, *params = (t.numpy() for t in operands("gru"))
    for _ in range(2):
        assert not library.takes(x, h, None, tuple(params), "gru", 1, False, EVEN, True)
    assert len(asked) == 1 and library.missing.startswith("libcudnn.so.9")


@pytest.fixture(scope="module")
def real(cudnn):
    return recurrences.declared(ctypes.CDLL("libcudnn.so.9"))


CTYPES = {
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "unsigned long long": ctypes.c_ulonglong,
}
ENUMERATIONS = (
    *("RNNAlgo", "RNNMode", "RNNBiasMode", "DirectionMode", "RNNInputMode", "DataType"),
    *("MathType", "ForwardMode", "RNNDataLayout", "WgradMode"),
)


def header():
    there = importlib.util.find_spec("nvidia")
    spec = there and importlib.util.find_spec("nvidia.cudnn")
    folders = [] if spec is None else [Path(f) for f in spec.submodule_search_locations or ()]
    found = [p for f in folders for p in sorted((f / "include").glob("cudnn_*_v9.h"))]
    if not found:
        pytest.skip("needs the headers of nvidia-cudnn-cu12")
    return re.sub(r"/\*.*?\*/", " ", "\n".join(p.read_text() for p in found), flags=re.S)


def test_the_types_of_arguments_are_those_of_the_header():
    text = header()
    for name, kinds in recurrences.FUNCTIONS.items():
        (declared,) = re.findall(rf"\b{name}\(([^)]*)\)\s*;", text)
        given = []
        for argument in declared.split(","):
            words = argument.replace("const", " ").split()
            if re.search(r"[*\[]|Descriptor_t|cudnnHandle_t", argument):
                given.append(ctypes.c_void_p)
            elif words[0].removeprefix("cudnn").removesuffix("_t") in ENUMERATIONS:
                given.append(ctypes.c_int)
            else:
                given.append(CTYPES[" ".join(words[:-1])])
        assert given == list(kinds), name


def test_the_numbers_are_those_of_the_header():
    text = header()

    def number(name):
        (found,) = set(re.findall(rf"\b{name}\s*=\s*(\d+)", text))
        return int(found)

    assert {
        np.dtype(np.float32): number("CUDNN_DATA_FLOAT"),
        np.dtype(np.float64): number("CUDNN_DATA_DOUBLE"),
        FLOAT16: number("CUDNN_DATA_HALF"),
        BFLOAT16: number("CUDNN_DATA_BFLOAT16"),
    } == recurrences.DATA_TYPES
    names = {
        "DEFAULT_MATH": "CUDNN_DEFAULT_MATH",
        "TENSOR_OP_MATH": "CUDNN_TENSOR_OP_MATH",
        "FMA_MATH": "CUDNN_FMA_MATH",
        "ALGO_STANDARD": "CUDNN_RNN_ALGO_STANDARD",
        "LINEAR_INPUT": "CUDNN_LINEAR_INPUT",
        "INFERENCE": "CUDNN_FWD_MODE_INFERENCE",
        "TRAINING": "CUDNN_FWD_MODE_TRAINING",
        "NO_BIAS": "CUDNN_RNN_NO_BIAS",
        "DOUBLE_BIAS": "CUDNN_RNN_DOUBLE_BIAS",
        "UNPACKED": "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED",
        "PACKED": "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED",
        "ADD": "CUDNN_WGRAD_MODE_ADD",
        "NOT_SUPPORTED": "CUDNN_STATUS_NOT_SUPPORTED",
    }
    for ours, theirs in names.items():
        assert getattr(recurrences, ours) == number(theirs), ours
    modes = {"relu": "RNN_RELU", "tanh": "RNN_TANH", "lstm": "LSTM", "gru": "GRU"}
    assert {mode: number(f"CUDNN_{name}") for mode, name in modes.items()} == recurrences.MODES
    directions = number("CUDNN_UNIDIRECTIONAL"), number("CUDNN_BIDIRECTIONAL")
    assert directions == (0, 1)
    assert re.search(r"CUDNN_RNN_PADDED_IO_ENABLED\s+\(1U << 0\)", text)
    assert recurrences.PADDED_IO == 1


class Deviceless:
    """The real functions, and answers where they would need a handle, that is, a device."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def cudnnSetDropoutDescriptor(self, *args):
        return 0

    def cudnnGetRNNWeightSpaceSize(self, handle, rnn, out):
        return 0

    def cudnnGetRNNTempSpaceSizes(self, *args):
        return 0


@pytest.mark.parametrize("kind", recurrences.DATA_TYPES, ids=str)
@pytest.mark.parametrize("mode", GATES)
def test_cudnn_takes_the_descriptors_and_gives_back_what_was_set(mode, kind, real, monkeypatch):
    monkeypatch.setattr(Stack, "_found", lambda self, base: [])
    runtime = Runtime()
    runtime.library = Deviceless(real)
    number = recurrences.DATA_TYPES[kind]
    for projected in (False, True) if mode == "lstm" else (False,):
        for padded in (False, True):
            signature = Signature(
                mode, 5, 4, 3 if projected else 4, 2, padded, projected, kind, padded, True, 0
            )
            stack = Stack(runtime, NumpyLayer(), signature)
            outs = [ctypes.c_int() for _ in range(12)]
            dropout, flags = ctypes.c_void_p(), ctypes.c_uint32()
            real.cudnnGetRNNDescriptor_v8.argtypes = [ctypes.c_void_p] * 15
            refs = [ctypes.byref(o) for o in (*outs, dropout, flags)]
            assert real.cudnnGetRNNDescriptor_v8(stack.rnn, *refs) == 0
            precision = recurrences.FLOAT if kind.itemsize == 2 else number
            math = recurrences.TENSOR_OP_MATH if kind.itemsize == 2 else recurrences.DEFAULT_MATH
            assert [o.value for o in outs] == [
                *(recurrences.ALGO_STANDARD, recurrences.MODES[mode], 2 * projected, padded),
                *(recurrences.LINEAR_INPUT, number, precision, math, 5, 4, signature.output, 2),
            ]
            assert flags.value == padded and dropout.value
            sizes = EVEN if padded else RAGGED
            batch = recurrences.Batch(stack, sizes, True)
            lengths, told = (ctypes.c_int * 3)(), [ctypes.c_int() for _ in range(5)]
            filling = (ctypes.c_char * 8)()
            real.cudnnGetRNNDataDescriptor.argtypes = [
                *[ctypes.c_void_p] * 6, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
            ]  # fmt: skip
            for data, width in ((batch.input, 5), (batch.output, signature.output * (1 + padded))):
                refs = [ctypes.byref(o) for o in told]
                assert real.cudnnGetRNNDataDescriptor(data, *refs, 3, lengths, filling) == 0
                layout = recurrences.UNPACKED if padded else recurrences.PACKED
                assert [o.value for o in told] == [number, layout, len(sizes), 3, width]
                assert list(lengths) == ([3, 3, 3] if padded else [4, 3, 2])
            for state, width in ((batch.hidden, signature.output), (batch.cell, 4)):
                shape, steps = (ctypes.c_int * 3)(), (ctypes.c_int * 3)()
                kinds, rank = ctypes.c_int(), ctypes.c_int()
                asked = 3, ctypes.byref(kinds), ctypes.byref(rank), shape, steps
                assert real.cudnnGetTensorNdDescriptor(state, *asked) == 0
                assert [kinds.value, rank.value, *shape] == [number, 3, 2 + 2 * padded, 3, width]
                assert list(steps) == [3 * width, width, 1]

"""Attention by plans: on a cuDNN made for tests, and by the real one without a device."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from frontend import KINDS, Names, NotSupportedError, Side, said_with_a_driver_that_answers
from planned import served
from test_ops import agree, numbers

import flambeau as fb
from flambeau.plugin import numerics
from flambeau_cupy.dtypes import BFLOAT16, FLOAT16
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.libraries import attention
from flambeau_cupy.libraries.attention import Attention

FORWARD, BACKWARD = "sdpa", "sdpa_backward"


class Graph:
    """A graph of the frontend that computes on the host, and notes what it was asked.

    As the real one it finds the weights of the backward pass again from the sums.
    """

    made: ClassVar[list[Graph]] = []
    refuses: ClassVar[set[str]] = set()

    def __init__(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert intermediate_data_type == compute_data_type == "FLOAT"
        self.element, self.sides, self.results, self.built = io_data_type, {}, [], False
        self.executed = 0
        Graph.made.append(self)

    def tensor(self, **known):
        self.sides[known["uid"]] = side = Side(**known)
        return side

    def _asked(self, kind, known):
        self.kind, self.known = kind, known
        sizes = [self.sides[uid].dim[3] for uid in (attention.QUERY, attention.VALUE)]
        if kind in self.refuses or any(n % 8 for n in sizes):
            raise NotSupportedError(kind)

    def sdpa(self, *, q, k, v, bias, attn_scale, use_causal_mask, generate_stats):
        assert generate_stats
        self._asked(FORWARD, (attn_scale, use_causal_mask))
        self.results = [Side(), Side()]
        return self.results

    def sdpa_backward(
        self, *, q, k, v, bias, attn_scale, use_causal_mask, o, dO, stats, dBias,
        use_deterministic_algorithm,
    ):  # fmt: skip
        self._asked(BACKWARD, (attn_scale, use_causal_mask))
        self.deterministic = use_deterministic_algorithm
        self.results = [Side(), Side(), Side()]
        return self.results

    def validate(self):
        for side in self.results:
            assert side.output is True
            self.sides[side.uid] = side
        for side in self.sides.values():
            assert side.stride[-1] == 1
            if side.dim[-1] > 1 and side is not self.sides.get(attention.BIAS):
                assert not any(s % 8 for s in side.stride[:-1]) or side.uid == attention.OVER_BIAS

    def build_operation_graph(self):
        pass

    def create_execution_plans(self, modes):
        assert modes

    def check_support(self):
        pass

    def build_plans(self, policy):
        self.built = True

    def get_workspace_size(self):
        return 24

    def execute(self, pack, workspace, handle):
        assert self.built and workspace and handle == "handle" and set(pack) == set(self.sides)
        self.executed += 1
        kind = KINDS[self.element]
        arrays = {}
        for uid, side in self.sides.items():
            dtype = np.dtype(np.float32) if uid == attention.TOTAL else kind
            wanted = "FLOAT" if uid == attention.TOTAL else self.element
            assert side.data_type == wanted
            if uid != attention.TOTAL:
                assert pack[uid] % 16 == 0
            arrays[uid] = side.at(pack[uid], dtype)
        compute(self.kind, arrays, *self.known)


def compute(kind, arrays, scale, causal):
    """Write the results of a pass, in float64."""
    read = {attention.QUERY, attention.KEY, attention.VALUE, attention.BIAS}
    if kind == BACKWARD:
        read |= {attention.OUTPUT, attention.TOTAL, attention.OVER_OUTPUT}
    given = {uid: a.astype(np.float64) for uid, a in arrays.items() if uid in read}
    q, k, v = (given[uid] for uid in (attention.QUERY, attention.KEY, attention.VALUE))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(a, group, 1) for a in (k, v))
    scores = scale * q @ k.swapaxes(2, 3)
    if attention.BIAS in given:
        bias = given[attention.BIAS]
        assert bias.shape[2:] == scores.shape[2:]
        assert np.isfinite(bias).any(-1).all(), "a closed row"
        scores = scores + bias
    if causal:
        scores = np.where(np.tri(*scores.shape[2:]), scores, -np.inf)
    if kind == FORWARD:
        top = scores.max(-1, keepdims=True)
        total = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
        arrays[attention.OUTPUT][...] = np.exp(scores - total) @ v
        arrays[attention.TOTAL][...] = total
        return
    weights = np.exp(scores - given[attention.TOTAL])
    over = given[attention.OVER_OUTPUT]
    shares = (over * given[attention.OUTPUT]).sum(-1, keepdims=True)
    over_scores = weights * (over @ v.swapaxes(2, 3) - shares)
    parts = {
        attention.OVER_QUERY: scale * over_scores @ k,
        attention.OVER_KEY: scale * over_scores.swapaxes(2, 3) @ q,
        attention.OVER_VALUE: weights.swapaxes(2, 3) @ over,
    }
    for uid, part in parts.items():
        b, h, n, d = part.shape
        own = arrays[uid].shape[1]
        arrays[uid][...] = part.reshape(b, own, h // own, n, d).sum(2)
    if attention.OVER_BIAS in arrays:
        assert arrays[attention.OVER_BIAS].shape == over_scores.shape
        arrays[attention.OVER_BIAS][...] = over_scores


class Runtime:
    def __init__(self):
        names = ("data_type", "heur_mode", "build_plan_policy")
        self.cudnn = SimpleNamespace(
            pygraph=Graph,
            cudnnGraphNotSupportedError=NotSupportedError,
            **{name: Names() for name in names},
        )
        self.index = 0

    def where(self):
        return {"handle": self.handle()}

    def handle(self):
        return "handle"

    def device(self):
        return self.index


@pytest.fixture(scope="module")
def device():
    yield from served(lambda layer: [Attention(layer, Runtime)])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(Graph, "made", [])
    monkeypatch.setattr(Graph, "refuses", set())
    for name in ("enabled", "deterministic"):
        monkeypatch.setattr(numerics, name, getattr(numerics, name))


@pytest.fixture
def passes(device):
    """How often each pass was executed so far."""
    fb.zeros(1, device=device)
    library = library_of(device)
    library.plans.clear()
    return lambda: tuple(
        sum(graph.executed for graph in Graph.made if graph.kind == kind)
        for kind in (FORWARD, BACKWARD)
    )


def library_of(device):
    from flambeau._dispatch.bound import bind

    return bind(device).backend.libraries[0]


def attend(**options):
    return lambda *args: fb.scaled_dot_product_attention(*args, **options)


def heads(*shape, seed=0):
    return numbers(*shape, seed=seed)


QKV = heads(2, 4, 5, 8), heads(2, 4, 7, 8, seed=1), heads(2, 4, 7, 16, seed=2)
SQUARE = heads(2, 4, 5, 8), heads(2, 4, 5, 8, seed=1), heads(2, 4, 5, 8, seed=2)
HALVES = fb.float16, fb.bfloat16


@pytest.mark.parametrize("dtype", HALVES)
def test_both_passes_are_those_of_the_definition(dtype, device, passes):
    agree(attend(), QKV, dtype, device)
    assert passes() == (1, 1)
    agree(attend(is_causal=True), QKV, dtype, device)
    agree(attend(is_causal=True, scale=0.5), SQUARE, dtype, device)
    assert passes() == (3, 3) and len({graph.known for graph in Graph.made}) == 3


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "shape", [(5, 7), (1, 7), (5, 1), (7,), (4, 5, 7), (2, 4, 5, 7), (1, 1, 5, 7), (2, 1, 1, 7)]
)
def test_a_bias_of_every_shape_is_added_and_gets_its_gradient(shape, dtype, device, passes):
    bias = heads(*shape, seed=3)
    agree(attend(), [*QKV, bias], dtype, device)
    agree(lambda q, k, v: attend()(q, k, v, bias.to(q.device, q.dtype)), QKV, dtype, device)
    assert passes() == (2, 2)


def test_masks_say_which_keys_are_seen_and_closed_rows_are_zero(device, passes):
    mask = fb.ones(5, 7, dtype=fb.bool).tril(2)
    mask[3] = False

    def masked(q, k, v):
        return attend()(q, k, v, mask.to(q.device))

    for dtype in HALVES:
        agree(masked, QKV, dtype, device)
    assert passes() == (2, 2)
    found = masked(*[t.to(device, fb.float16) for t in QKV])
    assert found[:, :, 3].abs().max().item() == 0 and found[:, :, 2].abs().min().item() > 0


@pytest.mark.parametrize("own", [1, 2])
def test_heads_of_keys_serve_several_heads_of_queries(own, device, passes):
    few = heads(2, own, 7, 8, seed=1), heads(2, own, 7, 16, seed=2)
    agree(attend(enable_gqa=True), [QKV[0], *few], fb.float16, device)
    agree(attend(enable_gqa=True, is_causal=True), [QKV[0], *few], fb.bfloat16, device)
    assert passes() == (2, 2)


def test_heads_and_rows_lie_in_memory_as_those_of_the_operands(device, passes):
    rows = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in SQUARE]

    def beside(q, k, v):
        return attend()(*[t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)])

    agree(beside, SQUARE, fb.float16, device)
    q, k, v = (t.to(device, fb.float16).requires_grad_() for t in rows)
    q = q.transpose(1, 2).contiguous().transpose(1, 2)
    out = attend()(q, k, v)
    assert out.transpose(1, 2).is_contiguous() == q.transpose(1, 2).is_contiguous() is True
    assert passes()[0] == 2


def test_operands_that_plans_cannot_read_are_copied(device, passes):
    memory = fb.zeros(2 * 4 * 7 * 8 + 1, dtype=fb.float16, device=device)
    wide = fb.zeros(2, 4, 7, 12, dtype=fb.float16, device=device)
    odd = memory[1:].view(2, 4, 7, 8)
    narrow = wide[..., 2:10]
    plain = QKV[1].to(device, fb.float16)
    odd.copy_(plain)
    narrow.copy_(plain)
    q, v = QKV[0].to(device, fb.float16), QKV[2].to(device, fb.float16)
    expanded = q[:, :1].expand(2, 4, 5, 8)
    for key in (odd, narrow):
        fb.testing.assert_close(attend()(q, key, v), attend()(q, plain, v), rtol=0, atol=0)
    fb.testing.assert_close(
        attend()(expanded, plain, v), attend()(expanded.contiguous(), plain, v), rtol=0, atol=0
    )
    assert passes() == (6, 0)
    q = q.requires_grad_()
    attend()(q, plain, v).sum().backward()  # the gradient of a sum is one number, repeated
    assert passes() == (7, 1) and q.grad is not None


def test_second_derivatives_go_through_the_decomposition(device, passes):
    def penalty(q, k, v):
        (found,) = fb.autograd.grad(attend(is_causal=True)(q, k, v).sum(), q, create_graph=True)
        return found

    agree(penalty, SQUARE, fb.bfloat16, device)
    assert passes() == (1, 1)


def test_what_has_no_plan_decomposes(device, passes):
    for dtype in (fb.float32, fb.float64):
        agree(attend(is_causal=True), QKV, dtype, device)
    half = fb.float16
    agree(attend(), [t[:, :, :1] for t in QKV], half, device)  # one row of queries
    agree(attend(), [t[0] for t in QKV], half, device)  # no heads
    agree(attend(), [t[:, :1] if i else t for i, t in enumerate(QKV)], half, device)  # broadcast
    agree(attend(), [QKV[0], QKV[1][:, :, :0], QKV[2][:, :, :0]], half, device)
    agree(attend(), [t[:0] for t in QKV], half, device)
    assert passes() == (0, 0) and not Graph.made
    agree(attend(), [*QKV[:2], QKV[2][..., :6]], half, device)  # a size of heads
    assert [graph.executed for graph in Graph.made] == [0]
    Graph.made.clear()
    Graph.refuses.add(BACKWARD)
    agree(attend(), QKV, half, device)
    assert passes() == (1, 0)
    library_of(device).plans.clear()
    Graph.refuses.add(FORWARD)
    agree(attend(), QKV, half, device)
    assert passes() == (1, 0)
    Graph.refuses.clear()
    library_of(device).plans.clear()
    numerics.enabled = False
    agree(attend(), QKV, half, device)
    assert passes() == (1, 0)


def test_dropout_draws_from_our_generator_and_decomposes(device, passes):
    q, k, v = (t.to(device, fb.float16) for t in QKV)
    found = []
    for _ in range(2):
        getattr(fb, device).manual_seed(3)
        found.append(attend(dropout_p=0.5)(q, k, v).tolist())
    assert found[0] == found[1] and passes() == (0, 0)


def test_wrong_arguments_raise_what_they_raise_elsewhere(device):
    q, k, v = (t.to(device, fb.float16) for t in QKV)
    bad = [
        ((q, k[:, :3], v), {"enable_gqa": True}, "must divide"),
        ((q, k[..., :4], v), {}, "must agree"),
        ((q, k, v[:, :, :3]), {}, "must agree"),
        (
            (q, k, v, fb.zeros(4, 7, dtype=fb.float16, device=device)),
            {},
            "size of tensor|broadcast",
        ),
        ((q, k, v, fb.zeros(5, 7, device=device, dtype=fb.bool)), {"is_causal": True}, "attn_mask"),
        ((q, k.float(), v), {}, "same dtype"),
        ((q, k.to("cpu"), v), {}, "same device"),
    ]
    for args, options, text in bad:
        with pytest.raises(RuntimeError, match=text):
            attend(**options)(*args)


def test_the_deterministic_switch_chooses_the_algorithm_of_the_backward_pass(device, passes):
    for wanted in (False, True):
        numerics.deterministic = wanted
        agree(attend(), QKV, fb.float16, device)
        assert Graph.made[-1].kind == BACKWARD and Graph.made[-1].deterministic is wanted
    assert [graph.kind for graph in Graph.made] == [FORWARD, BACKWARD, BACKWARD]


def test_a_plan_is_made_once_per_signature():
    library = Attention(NumpyLayer(), Runtime)
    q, k, v = (t.numpy().astype(np.float16) for t in QKV)
    for _ in range(3):
        library.forward(q, k, v, None, False, 0.5)
    assert len(Graph.made) == 1
    library.forward(q, k, v, None, False, 0.25)
    library.forward(q[:1], k[:1], v[:1], None, False, 0.5)
    library.forward(*[a.astype(BFLOAT16) for a in (q, k, v)], None, False, 0.5)
    library._runtime.index = 1
    library.forward(q, k, v, None, False, 0.5)
    assert len(Graph.made) == 5


def test_a_machine_without_cudnn_decomposes_and_asks_once():
    asked = []

    def load():
        asked.append(1)
        raise ImportError("No module named 'cudnn'")

    library = Attention(NumpyLayer(), load)
    q, k, v = (t.numpy().astype(np.float16) for t in QKV)
    for _ in range(2):
        assert not library.takes(q, k, v, None, False, 0.5)
        over = np.ones((2, 4, 5, 16), np.float16)
        saved = over, np.ones((2, 4, 5, 1), np.float32)
        assert library.backward(over, None, q, k, v, None, *saved, False, 0.5, False) is None
    assert len(asked) == 1 and library.missing == "No module named 'cudnn'"


DEVICELESS = """
import itertools, json, sys
import numpy as np
import frontend, test_cudnn_attention
from flambeau_cupy.libraries.attention import Plan
found, why = frontend.real()
properties = found.create_device_properties(json.dumps(frontend.H200))
where = {"device_property": properties, "sm_version": 90}
for name, signature in test_cudnn_attention.signatures():
    try:
        Plan(found, signature, where, build=False)
        print(name, "yes")
    except found.cudnnGraphNotSupportedError as error:
        print(name, "no:", str(error).splitlines()[0])
"""

SHAPES = {
    "square": ((2, 4, 128, 64), (2, 4, 128, 64), (2, 4, 128, 64)),
    "odd": ((3, 4, 100, 64), (3, 4, 77, 64), (3, 4, 77, 64)),
    "wide": ((1, 2, 64, 128), (1, 2, 64, 128), (1, 2, 64, 128)),
    "widest": ((1, 2, 64, 256), (1, 2, 64, 256), (1, 2, 64, 256)),
    "narrow": ((1, 2, 64, 8), (1, 2, 64, 8), (1, 2, 64, 8)),
    "other values": ((2, 4, 17, 64), (2, 4, 19, 64), (2, 4, 19, 32)),
    "groups": ((2, 8, 96, 64), (2, 2, 96, 64), (2, 2, 96, 64)),
}
FORMS = ("plain", "causal", "bias", "bias with gradient", "deterministic", "rows first")


def signatures():
    """What the library asks for, by name: of all shapes, forms, dtypes and passes."""
    for (name, shapes), form, kind, backward in itertools.product(
        SHAPES.items(), FORMS, (FLOAT16, BFLOAT16), (False, True)
    ):
        if form == "deterministic" and not backward:
            continue
        if name not in ("square", "odd") and form not in ("causal", "rows first"):
            continue
        asked = []
        library = Attention(NumpyLayer(), Runtime)
        library._planned = noted(library, asked)
        q, k, v = (np.zeros(shape, kind) for shape in shapes)
        if form == "rows first":
            q, k, v = (np.zeros(a.swapaxes(1, 2).shape, kind).swapaxes(1, 2) for a in (q, k, v))
        bias = None
        if form.startswith("bias"):
            bias = np.zeros((1, q.shape[1], q.shape[2], k.shape[2]), kind)
        numerics.deterministic = form == "deterministic"
        args = q, k, v, bias, form == "causal", 0.125
        if backward:
            out = library._made((*q.shape[:3], v.shape[3]), q)
            total = np.zeros((*q.shape[:3], 1), np.float32)
            library.backward(
                out, None, *args[:4], out, total, *args[4:], form == "bias with gradient"
            )
        else:
            library.takes(*args)
        numerics.deterministic = False
        assert len(asked) == 1
        passed = BACKWARD if backward else FORWARD
        yield f"{name}, {form}, {kind.name}, {passed}:", asked[0]


def noted(library, asked):
    """The library's `_planned`, which only notes the signature."""
    planned = Attention._planned

    class Notes(dict):
        def __missing__(self, signature):
            asked.append(signature)
            self[signature] = None

    library.plans = Notes()
    return lambda *args: planned(library, *args)


@pytest.mark.slow
def test_cudnn_takes_every_dtype_and_form_of_both_passes(cudnn, tmp_path):
    lines = said_with_a_driver_that_answers(DEVICELESS, tmp_path)
    assert len(lines) == len(list(signatures()))
    assert [line for line in lines if not line.endswith(": yes")] == []

"""Names of PyTorch's files that libraries import though they are private, by what they do."""

from __future__ import annotations

import dataclasses
import importlib
import math
import warnings
from collections import namedtuple

import pytest

import flambeau as fb
from flambeau.compat import torch_alias

nn = pytest.importorskip("flambeau.nn", reason="these are names of layers")


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module


def of(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"torch.{module}"), name)


def test_an_older_base_of_layers_is_a_layer_and_says_that_it_is_old(torch):
    old = of("nn.modules.conv._ConvTransposeMixin")
    assert issubclass(old, of("nn.modules.conv._ConvTransposeNd"))
    assert not isinstance(nn.Conv2d(1, 1, 1), old)
    with pytest.warns(FutureWarning, match="older name"):
        type("Old", (old,), {"dimensions": 1})(1, 1, 1)
    with pytest.warns(FutureWarning, match="Container is deprecated"):
        assert of("nn.modules.container.Container")(a=nn.ReLU()).a.inplace is False


@pytest.mark.parametrize("kind", ["Constant", "Circular", "Reflection", "Replication"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_layers_that_enlarge_have_the_base_of_their_kind(torch, kind, dims):
    base = of(f"nn.modules.padding._{kind}PadNd")
    for other in ("Constant", "Circular", "Reflection", "Replication"):
        layer = getattr(nn, f"{other}Pad{dims}d")
        assert issubclass(layer, base) is (other == kind)


def test_texts_of_modules_are_indented_from_their_second_line_on(torch):
    assert of("nn.modules.module._addindent")("a\nb\n  c", 2) == "a\n  b\n    c"
    assert of("nn.modules.container._addindent")("a", 4) == "a"


def test_hooks_of_all_modules_are_seen(torch):
    any_hook = of("nn.modules.module._has_any_global_hook")
    assert not any_hook()
    with of("nn.modules.module.register_module_forward_hook")(lambda *_: None):
        assert any_hook()
    assert not any_hook()
    with pytest.raises(NotImplementedError, match=r"Module \[ReLU\] is missing the required"):
        of("nn.modules.module._forward_unimplemented")(nn.ReLU(), 1)


def test_a_prefix_is_taken_off_the_names_of_a_state(torch):
    layers = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    state = nn.DataParallel(layers).state_dict()
    of("nn.modules.utils.consume_prefix_in_state_dict_if_present")(state, "module.")
    assert sorted(state) == sorted(layers.state_dict())
    assert state._metadata == {"": state._metadata[""], **layers.state_dict()._metadata}
    layers.load_state_dict(state)


def test_sizes_stand_where_none_is(torch):
    fill = of("nn.modules.utils._list_with_default")
    assert fill(7, [1, 2]) == 7
    assert fill([None, 5], [1, 2, 3]) == [2, 5]
    with pytest.raises(ValueError, match="at least 3"):
        fill([None, 5], [1, 2])


def test_initialisers_write_without_recording(torch):
    weight = nn.Parameter(fb.empty(50))
    uniform, normal, fill, zero, cut = (
        of(f"nn.init._no_grad_{name}_")
        for name in ("uniform", "normal", "fill", "zero", "trunc_normal")
    )
    assert uniform(weight, 2.0, 3.0) is weight and bool(((weight >= 2) & (weight <= 3)).all())
    assert cut(weight, 0.0, 1.0, -0.5, 0.5) is weight and float(weight.abs().max()) <= 0.5
    assert normal(weight, 9.0, 0.0).tolist() == [9.0] * 50
    assert fill(weight, 4.0).tolist() == [4.0] * 50 and zero(weight).tolist() == [0.0] * 50
    assert weight.is_leaf and weight.requires_grad


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("same", ["all", "keys", "none"])
def test_packed_projections_are_those_of_the_parts(torch, bias, same):
    q, k, v = fb.randn(4, 2, 6), fb.randn(5, 2, 6), fb.randn(5, 2, 6)
    k, v = {"all": (q, q), "keys": (k, k), "none": (k, v)}[same]
    w, b = fb.randn(18, 6), fb.randn(18) if bias else None
    parts = of("nn.functional._in_projection_packed")(q, k, v, w, b)
    biases = (None,) * 3 if b is None else b.chunk(3)
    apart = of("nn.functional._in_projection")(q, k, v, *w.chunk(3), *biases)
    for one, other in zip(parts, apart, strict=True):
        assert one.is_contiguous() and fb.allclose(one, other, atol=1e-6)
    with pytest.raises(AssertionError, match="expecting key weights shape"):
        of("nn.functional._in_projection")(q, k, v, *fb.randn(3, 6, 6)[:1], w, w)


def test_masks_become_numbers_to_add(torch):
    canonical = of("nn.functional._canonical_mask")
    mask = fb.tensor([True, False])
    assert canonical(mask, "m", None, "", fb.float64).tolist() == [-math.inf, 0.0]
    assert canonical(mask, "m", None, "", fb.float64).dtype is fb.float64
    numbers = fb.ones(2)
    assert canonical(numbers, "m", None, "", fb.float64) is numbers
    assert canonical(None, "m", None, "", fb.float64) is None
    with pytest.raises(AssertionError, match="only bool and floating types of m"):
        canonical(fb.ones(2, dtype=fb.int64), "m", None, "", fb.float32)
    with pytest.warns(UserWarning, match="mismatched m and n"):
        canonical(mask, "m", fb.float32, "n", fb.float32)


def test_shapes_of_attention_are_checked(torch):
    check = of("nn.functional._mha_shape_check")
    batch, one = fb.ones(3, 2, 4), fb.ones(3, 4)
    assert check(batch, batch, batch, fb.ones(2, 3), fb.ones(3, 3), 2) is True
    assert check(one, one, one, fb.ones(3), fb.ones(2, 3, 3), 2) is False
    for wrong in (
        (batch, one, batch, None, None),
        (one, one, one, fb.ones(3, 3), None),
        (one, one, one, None, fb.ones(3, 3, 3)),
        (one, one, one, None, fb.ones(3)),
        (one[0], one, one, None, None),
    ):
        with pytest.raises(AssertionError):
            check(*wrong, 2)


def test_small_checks_of_layers(torch):
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert [of("nn.functional._get_softmax_dim")("softmax", n, 1) for n in range(5)] == [
            *(0, 0, 1, 0, 1)
        ]
    assert of("nn.functional._none_or_dtype")(fb.ones(1)) is fb.float32
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        of("nn.functional._verify_batch_size")([1, 8, 1])
    of("nn.functional._verify_batch_size")([1, 8, 2])
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        of("nn.functional._verify_spatial_size")([9, 8, 1])
    sizes = of("nn.functional._unpool_output_size")
    x = fb.ones(1, 1, 3, 4)
    assert sizes(x, (2, 2), (2, 2), (0, 0), None) == [6, 8]
    assert sizes(x, (2, 2), (2, 2), (0, 0), (1, 1, 7, 8)) == [7, 8]
    with pytest.raises(ValueError, match="between 4 and 8"):
        sizes(x, (2, 2), (2, 2), (0, 0), (8, 8))


def test_a_causal_mask_is_recognised(torch):
    causal = of("nn.modules.transformer._generate_square_subsequent_mask")(3)
    found = of("nn.modules.transformer._detect_is_causal_mask")
    assert found(causal) and not found(causal.t()) and not found(causal[:2])
    assert not found(causal, False) and found(None, True) and not found(None)
    length = of("nn.modules.transformer._get_seq_len")
    x = fb.ones(2, 5, 3)
    assert (length(x, True), length(x, False), length(x[0], True)) == (5, 2, 5)


def test_tensors_in_containers_are_found(torch):
    x, y = fb.ones(1), fb.zeros(1)

    @dataclasses.dataclass
    class Pair:
        first: object
        second: object

    found = list(of("nn.parallel.distributed._find_tensors")([{"a": x}, Pair(1, (y,)), "b"]))
    assert len(found) == 2 and found[0] is x and found[1] is y
    assert of("nn.parallel.parallel_apply.get_a_var")({"a": [1, y]}) is y
    assert of("nn.parallel.parallel_apply.get_a_var")([1]) is None
    named = of("nn.parallel.scatter_gather.is_namedtuple")
    assert named(namedtuple("P", "a")(1)) and not named((1,))
    assert callable(torch.nn.parallel.parallel_apply)
    assert of("nn.parallel._functions._get_stream")(fb.device("cpu")) is None


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, None])
def test_scalers_of_programs_unscale_and_choose_as_ours(torch, bad):
    grads = [fb.tensor([2.0, 4.0]), fb.tensor([[8.0]])]
    if bad is not None:
        grads[1].fill_(bad)
    found = fb.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, fb.tensor([0.5]))
    assert grads[0].tolist() == [1.0, 2.0] and found.item() == (bad is not None)
    scale, tracker = fb.tensor([8.0]), fb.tensor([1], dtype=fb.int32)
    torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 2)
    assert (scale.item(), tracker.item()) == ((2.0, 0) if bad is not None else (16.0, 0))


def test_storages_are_told_apart_without_being_kept(torch):
    reductions = importlib.import_module("torch.multiprocessing.reductions")
    x = fb.ones(3)
    one, view = (reductions.StorageWeakRef(t.untyped_storage()) for t in (x, x[1:]))
    assert one == view and hash(one) == hash(view) and not one.expired()
    assert one != reductions.StorageWeakRef(fb.ones(3).untyped_storage())
    make, arguments = reductions.reduce_tensor(fb.arange(4.0)[1:])
    assert make(*arguments).tolist() == [1.0, 2.0, 3.0]
    del x
    assert one.expired()


def test_other_files_have_what_programs_take(torch):
    assert of("jit.annotations.List") is list or of("jit.annotations.List")[int]
    assert torch.jit.annotations.List is of("jit.annotations.List")
    assert of("hub._check_module_exists")("json") and not of("hub._check_module_exists")("jsonn")
    assert torch.autograd._is_checkpoint_valid() and not torch.autograd.kineto_available()
    shape = of("onnx.operators.shape_as_tensor")(fb.ones(2, 3))
    assert of("onnx.operators.reshape_from_tensor_shape")(fb.ones(6), shape).shape == (2, 3)
    assert of("nn.functional.has_torch_function")((fb.ones(1),)) is False
    for name in ("_all_gather_base", "_reduce_scatter_base", "_get_global_rank"):
        assert callable(of(f"distributed.distributed_c10d.{name}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of("distributed.algorithms.ddp_comm_hooks.DDPCommHookType").FP16_COMPRESS
    assert callable(of("distributed.rendezvous.rendezvous"))
    assert of("_jit_internal._qualified_name")(nn.Linear).startswith("__torch__.")


def test_the_older_vmap_maps_products_with_a_jacobian_and_lets_nothing_pass(torch):
    mapped = of("_vmap_internals._vmap")
    x = fb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (g,) = fb.autograd.grad((x**3).sum(), x, create_graph=True)
    eye = fb.eye(3)
    (found,) = mapped(lambda v: fb.autograd.grad(g, x, v, retain_graph=True))(eye)
    assert fb.equal(found, fb.diag(6 * x.detach()))
    assert mapped(lambda v: v[:1] * 2, 0, 1)(eye).shape == (1, 3)
    doubled, nothing = mapped(lambda v: (v[:2] * 2, None), 0, (1, 0), True)(eye)
    assert nothing is None
    assert fb.equal(doubled, 2 * eye[:2])
    assert mapped(lambda v: None, allow_none_pass_through=True)(eye) is None
    assert mapped(lambda v: v + 1, allow_none_pass_through=True)(eye).shape == (3, 3)
    with pytest.raises(ValueError, match="must only return Tensors"):
        mapped(lambda v: (v, None))(eye)


def test_unit_vectors_of_several_tensors_are_split_as_these_are(torch):
    basis = of("autograd.functional._construct_standard_basis_for")
    tensors = fb.rand(2), fb.rand((), dtype=fb.float64), fb.rand(0), fb.rand(1, 2)
    parts = basis(tensors, tuple(t.numel() for t in tensors))
    assert [part.dtype for part in parts] == [t.dtype for t in tensors]
    assert [part.shape for part in parts] == [(5, t.numel()) for t in tensors]
    assert fb.equal(fb.cat([part.double() for part in parts], 1), fb.eye(5, dtype=fb.float64))
    with pytest.raises(AssertionError):
        basis((), ())

"""Initial weights: the same seed fills tensors as PyTorch does, with the same errors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

SHAPES = [(3, 5), (5, 3), (16, 16), (4, 3, 3, 3), (2, 6, 5)]

FILLS = [
    ("uniform_", {}),
    ("uniform_", {"a": -2.0, "b": 3.0}),
    ("normal_", {}),
    ("normal_", {"mean": 1.0, "std": 0.5}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"std": 0.02}),
    ("trunc_normal_", {"mean": 0.5, "std": 0.2, "a": 0.4, "b": 0.6}),
    ("trunc_normal_", {"mean": -1.0, "std": 1.0, "a": 0.0, "b": 3.0}),
    ("constant_", {"val": 0.3}),
    ("ones_", {}),
    ("zeros_", {}),
    ("xavier_uniform_", {}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 5**0.5}),
    ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", {}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "selu"}),
    ("orthogonal_", {}),
    ("orthogonal_", {"gain": 3.0}),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "options"), FILLS, ids=lambda v: str(v))
def test_equal_seeds_give_equal_values_and_equal_generators_after(name, options, shape):
    drawn = []
    for lib in (torch, fb):
        lib.manual_seed(11)
        tensor = lib.empty(shape)
        assert getattr(lib.nn.init, name)(tensor, **options) is tensor
        drawn.append((tensor.flatten().tolist(), lib.rand(3).tolist()))
    (expected, rest), (values, rest_here) = drawn
    assert values == pytest.approx(expected, rel=2e-6, abs=2e-6)
    assert rest_here == rest


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (0, 3)], ids=str)
def test_eye_is_the_identity(shape):
    expected = torch.nn.init.eye_(torch.empty(shape)).tolist()
    assert fb.nn.init.eye_(fb.empty(shape)).tolist() == expected


@pytest.mark.parametrize(
    ("shape", "groups"),
    [((3, 16, 5), 1), ((4, 2, 3, 3), 1), ((6, 3, 3, 4), 3), ((2, 2, 3, 3, 3), 2)],
    ids=str,
)
def test_dirac_passes_channels_through(shape, groups):
    expected = torch.nn.init.dirac_(torch.empty(shape), groups).flatten().tolist()
    assert fb.nn.init.dirac_(fb.empty(shape), groups).flatten().tolist() == expected


@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.5, 1.0])
def test_sparse_zeroes_the_same_entries(sparsity):
    values = []
    for lib in (torch, fb):
        lib.manual_seed(3)
        values.append(lib.nn.init.sparse_(lib.empty(10, 4), sparsity, 1.0).flatten().tolist())
    assert values[1] == pytest.approx(values[0], rel=2e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["uniform_", "normal_", "kaiming_uniform_"])
def test_other_dtypes_draw_the_same_values(name, dtype):
    values = []
    for lib in (torch, fb):
        lib.manual_seed(5)
        tensor = lib.empty(4, 8, dtype=getattr(lib, dtype))
        values.append(getattr(lib.nn.init, name)(tensor).double().flatten().tolist())
    # One unit in the last place of the narrow types, which round transcendental functions.
    tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-12}[dtype]
    assert values[1] == pytest.approx(values[0], rel=tolerance)


@pytest.mark.parametrize(
    ("nonlinearity", "param"),
    [
        *[(name, None) for name in ("linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh")],
        *[("relu", None), ("selu", None), ("leaky_relu", None), ("leaky_relu", 0.2)],
    ],
)
def test_gains_are_equal(nonlinearity, param):
    assert fb.nn.init.calculate_gain(nonlinearity, param) == torch.nn.init.calculate_gain(
        nonlinearity, param
    )


ERRORS = [
    ("calculate_gain", ("cubic",)),
    ("calculate_gain", ("leaky_relu", True)),
    ("eye_", ((3,),)),
    ("dirac_", ((3, 3),)),
    ("dirac_", ((3, 3, 3), 2)),
    ("xavier_uniform_", ((3,),)),
    ("kaiming_normal_", ((3,),)),
    ("orthogonal_", ((3,),)),
    ("sparse_", ((3,), 0.1)),
]


@pytest.mark.parametrize(("name", "args"), ERRORS, ids=lambda v: str(v))
def test_errors_have_the_class_and_the_beginning_of_pytorchs(name, args):
    raised = []
    for lib in (torch, fb):
        given = [lib.empty(arg) if isinstance(arg, tuple) else arg for arg in args]
        with pytest.raises(ValueError) as error:  # noqa: PT011 - texts are compared below
            getattr(lib.nn.init, name)(*given)
        raised.append(str(error.value))
    assert raised[1].startswith(raised[0])


@pytest.mark.parametrize(
    "name", ["uniform", "normal", "eye", "xavier_normal", "kaiming_uniform", "orthogonal"]
)
def test_names_without_underscore_warn_and_do_the_same(name):
    tensor = fb.empty(3, 3)
    with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
        assert getattr(fb.nn.init, name)(tensor) is tensor
    assert getattr(fb.nn.init, name).__name__ == name


@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_"])
def test_empty_tensors_are_left_alone_with_a_warning(name):
    with pytest.warns(UserWarning, match="zero-element"):
        assert getattr(fb.nn.init, name)(fb.empty(0, 3)).shape == (0, 3)


def test_a_limit_far_from_the_mean_warns():
    with pytest.warns(UserWarning, match="more than 2 std"):
        fb.nn.init.trunc_normal_(fb.empty(2), mean=5.0, std=1.0, a=-1.0, b=1.0)


def test_a_given_generator_is_used():
    drawn = []
    for lib in (torch, fb):
        generator = lib.Generator().manual_seed(9)
        lib.manual_seed(1)
        tensor = lib.nn.init.xavier_normal_(lib.empty(4, 4), generator=generator)
        drawn.append(tensor.flatten().tolist())
    assert drawn[1] == pytest.approx(drawn[0], rel=2e-6)


def test_filling_records_no_gradient():
    parameter = fb.nn.Parameter(fb.empty(3, 3))
    fb.nn.init.kaiming_uniform_(parameter)
    assert parameter.grad_fn is None and parameter.requires_grad

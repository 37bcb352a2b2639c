"""Jacobians, Hessians and their products with vectors, against derivatives by hand."""

import pytest

import flambeau as fb
from flambeau.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

A = [[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]]


def double(data, **options):
    return fb.tensor(data, dtype=fb.float64, **options)


def linear(x):
    return double(A) @ x


def cubes(x):
    return (x**3).sum()


def product(x, y):
    return x * y.sum(), (x**2).sum()


def test_jacobian_of_a_linear_map_is_its_matrix():
    assert jacobian(linear, double([1.0, 2.0, 3.0])).tolist() == A


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian_has_the_shapes_of_output_and_input_joined(strategy):
    x = double([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = jacobian(lambda x: x.sum(0) * 2, x, vectorize=True, strategy=strategy)
    assert found.shape == (3, 2, 3)
    assert found[1].tolist() == [[0.0, 2.0, 0.0], [0.0, 2.0, 0.0]]


def test_forward_and_reverse_jacobians_are_equal_for_several_inputs_and_outputs():
    xs = (double([1.0, 2.0]), double([3.0, 4.0, 5.0]))
    by_rows = jacobian(product, xs)
    by_columns = jacobian(product, xs, vectorize=True, strategy="forward-mode")
    assert [len(row) for row in by_rows] == [2, 2]
    for left, right in zip(by_rows, by_columns, strict=True):
        assert [block.tolist() for block in left] == [block.tolist() for block in right]
    assert by_rows[0][1].tolist() == [[1.0] * 3, [2.0] * 3]
    assert by_rows[1][1].tolist() == [0.0] * 3


def test_jacobian_keeps_the_tuples_it_was_given():
    x = double([1.0])
    assert isinstance(jacobian(lambda x: x, (x,)), tuple)
    assert isinstance(jacobian(lambda x: (x,), x), tuple)
    assert isinstance(jacobian(lambda x: (x,), (x,))[0], tuple)
    assert isinstance(jacobian(lambda x: x, x), fb.Tensor)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_jacobian_of_nothing_is_empty(shape):
    x = fb.zeros(shape, dtype=fb.float64)
    assert jacobian(lambda x: x * 2, x).shape == (*shape, *shape)


def test_jacobian_of_a_0d_function_is_0d():
    found = jacobian(lambda x: x**2, double(3.0))
    assert found.shape == ()
    assert found.item() == 6.0


def test_hessian_of_cubes_is_diagonal():
    assert hessian(cubes, double([1.0, 2.0])).tolist() == [[6.0, 0.0], [0.0, 12.0]]


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian_of_two_inputs_has_four_blocks(strategy):
    xs = (double([1.0, 2.0]), double([3.0]))
    found = hessian(
        lambda x, y: (x**2 * y).sum(), xs, vectorize=True, outer_jacobian_strategy=strategy
    )
    assert found[0][0].tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert found[0][1].tolist() == [[2.0], [4.0]]
    assert found[1][0].tolist() == [[2.0, 4.0]]
    assert found[1][1].tolist() == [[0.0]]


def test_hessian_accepts_one_element_of_any_rank():
    assert hessian(lambda x: (x**2).sum().reshape(1, 1), double([1.0])).tolist() == [[2.0]]
    assert hessian(lambda x: (x**2).sum(), (double([1.0]),))[0][0].tolist() == [[2.0]]


def test_products_with_the_jacobian():
    x = double([1.0, 2.0, 3.0])
    outputs, from_left = vjp(linear, x, double([1.0, 10.0]))
    assert outputs.tolist() == [5.0, 7.0]
    assert from_left.tolist() == [1.0, -8.0, 30.0]
    outputs, from_right = jvp(linear, x, double([1.0, 10.0, 100.0]))
    assert outputs.tolist() == [5.0, 7.0]
    assert from_right.tolist() == [21.0, 290.0]


def test_products_with_several_inputs_and_outputs_keep_tuples():
    xs = (double([1.0, 2.0]), double([3.0]))
    _, gradients = vjp(product, xs, (double([1.0, 1.0]), double(2.0)))
    assert [g.tolist() for g in gradients] == [[7.0, 11.0], [3.0]]
    _, changes = jvp(product, xs, (double([1.0, 0.0]), double([1.0])))
    assert [change.tolist() for change in changes] == [[4.0, 2.0], 2.0]


def test_products_with_the_hessian():
    x, v = double([1.0, 2.0]), double([1.0, -1.0])
    for which in (hvp, vhp):
        output, found = which(cubes, x, v)
        assert output.item() == 9.0
        assert found.tolist() == [6.0, -12.0]


class Lopsided(fb.autograd.Function):
    """f(x) = 0 with the gradient (x₂, 0) declared: a Hessian that is not symmetric."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum() * 0

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * fb.stack([x[1], x[1] * 0])


def test_hvp_multiplies_from_the_right_and_vhp_from_the_left():
    x, v = double([1.0, 2.0]), double([3.0, 5.0])
    assert hvp(Lopsided.apply, x, v)[1].tolist() == [5.0, 0.0]
    assert vhp(Lopsided.apply, x, v)[1].tolist() == [0.0, 3.0]


@pytest.mark.parametrize("which", [vjp, jvp, hvp, vhp])
def test_vector_may_be_left_out_for_single_elements(which):
    output, found = which(lambda x: (x**2).sum(), double([3.0]))
    assert output.item() == 9.0
    assert found.item() == (6.0 if which in (vjp, jvp) else 2.0)


@pytest.mark.parametrize("which", [jvp, hvp, vhp])
def test_missing_vector_for_several_elements_raises(which):
    with pytest.raises(RuntimeError, match="single input of one element"):
        which(cubes, double([1.0, 2.0]))


def test_vector_of_wrong_length_or_shape_raises():
    x = double([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"shape \(2,\)"):
        vjp(lambda x: x, x, double([1.0]))
    with pytest.raises(RuntimeError, match="a single tensor, got 2"):
        vjp(lambda x: x, x, (x, x))


@pytest.mark.parametrize("which", [vjp, jvp, jacobian, hessian, hvp, vhp])
def test_results_are_detached_unless_the_graph_is_wanted(which):
    v = {} if which in (jacobian, hessian) else {"v": double([1.0])}
    x = double([2.0], requires_grad=True)

    def func(x):
        return (x**4).sum() if which not in (vjp, jvp) else x**4

    plain, recorded = which(func, x, **v), which(func, x, **v, create_graph=True)
    if v:
        plain, recorded = plain[1], recorded[1]
    assert not plain.requires_grad
    (slope,) = fb.autograd.grad(recorded.sum(), x)
    order = 1 if which in (vjp, jvp, jacobian) else 2
    assert slope.item() == {1: 12 * 2.0**2, 2: 24 * 2.0}[order]
    assert x.grad is None


def test_create_graph_works_for_inputs_that_do_not_require_grad():
    assert jacobian(lambda x: x**2, double([2.0]), create_graph=True).tolist() == [[4.0]]


def test_works_under_no_grad():
    with fb.no_grad():
        assert jacobian(lambda x: x**2, double([2.0])).tolist() == [[4.0]]


def test_independent_inputs_give_zeros_and_strict_refuses_them():
    def constant(x):
        return double([1.0, 2.0])

    def first(x, y):
        return x * 2

    x = double([1.0, 2.0])
    assert jacobian(constant, x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert jacobian(first, (x, x))[1].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match=r"output 0 .*does not require a gradient"):
        jacobian(constant, x, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        jacobian(first, (x, x), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        vjp(first, (x, x), x, strict=True)


def test_strict_hessian_refuses_a_linear_function():
    assert hessian(lambda x: x.sum(), double([1.0, 2.0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="strict=True forbids"):
        hessian(lambda x: x.sum(), double([1.0, 2.0]), strict=True)


def test_hessian_of_several_elements_or_outputs_raises():
    with pytest.raises(RuntimeError, match=r"single element, got shape \(2,\)"):
        hessian(lambda x: x, double([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="single tensor"):
        hvp(lambda x: (x, x), double([1.0]), double([1.0]))


@pytest.mark.parametrize("bad", [[1.0], 1.0, "x"])
def test_what_is_no_tensor_raises_type_error(bad):
    with pytest.raises(TypeError, match="must be a tensor or a tuple of tensors"):
        jacobian(lambda x: x, bad)
    with pytest.raises(TypeError, match="must be a tensor or a tuple of tensors"):
        jacobian(lambda x: bad, double([1.0]))


def test_unknown_strategies_and_combinations_are_refused():
    x = double([1.0])
    with pytest.raises(AssertionError, match="'sideways'"):
        jacobian(cubes, x, strategy="sideways")
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(cubes, x, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="create_graph"):
        jacobian(cubes, x, True, vectorize=True, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="strict=True"):
        hessian(cubes, x, strict=True, vectorize=True)


class TestManyResultsOfFewNumbers:
    N = 10_000

    @pytest.fixture
    def passes(self, monkeypatch):
        counted, grad = [], fb.autograd.grad

        def count(*args, **kwargs):
            counted.append(args)
            return grad(*args, **kwargs)

        monkeypatch.setattr(fb.autograd, "grad", count)
        return counted

    def test_they_take_a_pass_for_each_number(self, passes):
        x, y = fb.tensor([0.5, 2.0], dtype=fb.float64), fb.tensor(0.25, dtype=fb.float64)
        ramp = fb.linspace(0, 1, self.N, dtype=fb.float64)

        def f(x, y):
            return (x[0] * ramp).sin() * x[1] + y, y * y

        (dx, dy), (none, square) = jacobian(f, (x, y))
        assert len(passes) < 10
        wanted = fb.stack([(0.5 * ramp).cos() * ramp * 2, (0.5 * ramp).sin()], 1)
        fb.testing.assert_close(dx, wanted)
        assert (dy == 1).all() and dy.shape == (self.N,)
        assert none.tolist() == [0, 0] and square == 0.5
        assert not dx.requires_grad

    def test_a_function_whose_backward_is_not_recorded_goes_by_rows(self, passes):
        class Doubled(fb.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, g, h):
                return g.detach() * 2

        found = jacobian(lambda x: Doubled.apply(x)[0].expand(self.N), fb.ones(1))
        assert (found == 2).all()
        assert len(passes) >= self.N

    def test_what_is_no_number_is_what_rows_give(self):
        found = jacobian(lambda x: x.expand(self.N).sqrt(), fb.zeros(1))
        assert found.isnan().all()

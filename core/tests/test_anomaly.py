"""Anomaly mode: NaN in a backward pass, and where the forward call was."""

import warnings

import pytest

import flambeau as fb
from flambeau._autograd import engine
from flambeau.autograd import detect_anomaly, set_detect_anomaly


@pytest.fixture
def zero(device):
    return fb.zeros(1, device=device, requires_grad=True)


class Broken(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("Some error in backward")


def find_me(x):
    return Broken.apply(x)


def warned(body):
    """Runs `body`; the texts of all warnings and the RuntimeError it raised, if any."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            body()
        except RuntimeError as error:
            return [str(w.message) for w in caught], error
    return [str(w.message) for w in caught], None


def test_nan_in_a_gradient_raises_and_names_the_function(zero):
    def body():
        with detect_anomaly():
            (zero.sqrt() * 0).sum().backward()

    texts, error = warned(body)
    assert str(error) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert texts[1].startswith("Error detected in SqrtBackward0. Traceback of forward call")


def test_nan_raises_under_create_graph_too(zero):
    def body():
        with set_detect_anomaly(True):
            fb.autograd.grad((zero.sqrt() * 0).sum(), zero, create_graph=True)

    assert "'SqrtBackward0' returned nan values" in str(warned(body)[1])


def test_nan_in_the_forward_pass_alone_does_not_raise(zero):
    with set_detect_anomaly(True):
        (zero + float("nan")).sum().backward()
    assert zero.grad.item() == 1.0


def test_infinities_do_not_raise(zero):
    with set_detect_anomaly(True):
        zero.sqrt().sum().backward()
    assert zero.grad.item() == float("inf")


def test_integer_gradients_are_not_searched_for_nan(device):
    x = fb.tensor([3.0, 1.0], device=device, requires_grad=True)
    with set_detect_anomaly(True):
        x.sort()[0].sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_check_nan_false_lets_nan_pass(zero):
    with set_detect_anomaly(True, check_nan=False):
        (zero.sqrt() * 0).sum().backward()
    assert zero.grad.isnan().item()


def test_a_failing_backward_is_shown_with_its_forward_call(device):
    x = fb.ones(2, device=device, requires_grad=True)

    def body():
        with set_detect_anomaly(True):
            find_me(x).sum().backward()

    texts, error = warned(body)
    assert str(error) == "Some error in backward"
    (text,) = texts
    assert text.startswith("Error detected in BrokenBackward. Traceback of forward call")
    assert "find_me" in text
    assert "test_anomaly.py" in text
    assert "_dispatch.py" not in text  # the library's own frames are left out


def test_without_a_recorded_forward_the_message_says_how_to_get_it(zero):
    y = (zero.sqrt() * 0).sum()

    def body():
        with set_detect_anomaly(True):
            y.backward()

    texts, error = warned(body)
    assert "SqrtBackward0" in str(error)
    assert "No forward pass information available" in texts[0]


def test_a_stale_saved_tensor_is_shown_with_its_forward_call(device):
    x = fb.ones(2, device=device, requires_grad=True)

    def body():
        with set_detect_anomaly(True):
            y = x * 1
            z = y * y
            y.add_(1)
            z.sum().backward()

    texts, error = warned(body)
    assert "modified by an inplace operation" in str(error)
    assert any(t.startswith("Error detected in MulBackward0") for t in texts)


def test_detect_anomaly_warns_that_it_is_slow():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        detect_anomaly()
    assert not fb.is_anomaly_enabled()


def test_set_detect_anomaly_acts_at_once_as_a_function():
    try:
        set_detect_anomaly(True, check_nan=False)
        assert fb.is_anomaly_enabled()
        assert not fb.is_anomaly_check_nan_enabled()
    finally:
        set_detect_anomaly(False)
    assert not fb.is_anomaly_enabled()
    assert fb.is_anomaly_check_nan_enabled()


def test_blocks_restore_what_was_before_them():
    with set_detect_anomaly(True):
        with set_detect_anomaly(False):
            assert not fb.is_anomaly_enabled()
        assert fb.is_anomaly_enabled()
        with pytest.raises(KeyError), set_detect_anomaly(True, check_nan=False):
            raise KeyError("inside")
        assert fb.is_anomaly_check_nan_enabled()
    assert not fb.is_anomaly_enabled()


def test_nothing_watches_the_backward_pass_when_anomaly_mode_is_off(device):
    assert engine.watchers == []
    with set_detect_anomaly(True):
        assert len(engine.watchers) == 1
    assert engine.watchers == []
    x = fb.ones(1, device=device, requires_grad=True)
    y = x * 2
    assert "traceback" not in y.grad_fn.metadata


def test_gradients_are_the_same_in_anomaly_mode(device):
    def gradient():
        x = fb.tensor([0.5, 1.5], device=device, requires_grad=True)
        y = (x.exp() * x[0]).sum()
        y.backward()
        return x.grad.tolist()

    plain = gradient()
    with set_detect_anomaly(True):
        assert gradient() == plain

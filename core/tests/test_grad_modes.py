"""no_grad, enable_grad, set_grad_enabled, inference_mode: what is recorded, where, how long."""

import asyncio
import threading

import pytest

import flambeau as fb


def on():
    return fb.is_grad_enabled()


@pytest.fixture
def x(device):
    return fb.tensor([1.0], device=device, requires_grad=True)


def test_recording_is_on_by_default(x):
    assert on()
    assert (x * 2).requires_grad


def test_no_grad_gives_results_without_history(x):
    with fb.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf


def test_no_grad_does_not_change_existing_flags(x):
    with fb.no_grad():
        assert x.requires_grad


def test_leaves_made_under_no_grad_may_require_a_gradient(device):
    with fb.no_grad():
        made = fb.ones(1, device=device, requires_grad=True)
        switched = fb.ones(1, device=device).requires_grad_()
    assert made.requires_grad
    assert switched.requires_grad


def test_enable_grad_records_within_no_grad(x):
    with fb.no_grad():
        with fb.enable_grad():
            y = x * 2
        z = x * 2
    assert y.requires_grad
    assert not z.requires_grad
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_enable_grad_changes_nothing_outside_no_grad():
    with fb.enable_grad():
        assert on()
    assert on()


def test_nested_blocks_restore_the_mode_they_found():
    seen = []
    with fb.no_grad():
        seen.append(on())
        with fb.enable_grad():
            seen.append(on())
            with fb.no_grad():
                seen.append(on())
            seen.append(on())
        seen.append(on())
    assert seen == [False, True, False, True, False]
    assert on()


def test_one_object_may_be_entered_within_itself():
    mode = fb.no_grad()
    seen = []
    with mode:
        with fb.enable_grad():
            with mode:
                seen.append(on())
            seen.append(on())
        seen.append(on())
    assert seen == [False, True, False]
    assert on()


def test_exceptions_restore_the_mode():
    with pytest.raises(ValueError, match="inside"), fb.no_grad():
        raise ValueError("inside")
    assert on()


@pytest.mark.parametrize(
    ("decorator", "inside"),
    [
        (fb.no_grad(), False),
        (fb.no_grad, False),
        (fb.enable_grad(), True),
        (fb.enable_grad, True),
        (fb.inference_mode(), False),
        (fb.inference_mode, False),
        (fb.inference_mode(mode=False), True),
    ],
    ids=[
        "no_grad()",
        "no_grad",
        "enable_grad()",
        "enable_grad",
        "inference()",
        "inference",
        "inference(False)",
    ],
)
def test_decorated_functions_run_in_the_mode_and_keep_their_name(decorator, inside):
    @decorator
    def double(value, *, times=2):
        """Twice the value."""
        return value * times, on()

    for outside in (True, False):
        with fb.set_grad_enabled(outside):
            assert double(3, times=4) == (12, inside)
            assert on() is outside
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice the value."


def test_decorated_functions_may_recurse():
    @fb.no_grad()
    def down(n):
        return [on()] + (down(n - 1) if n else [])

    assert down(3) == [False] * 4
    assert on()


def test_a_decorated_generator_has_the_mode_only_while_its_own_code_runs():
    @fb.no_grad()
    def numbers():
        received = yield on()
        while received != "stop":
            received = yield received, on()
        return "done"

    generator = numbers()
    assert next(generator) is False
    assert on()
    assert generator.send("a") == ("a", False)
    assert on()
    with pytest.raises(StopIteration) as stopped:
        generator.send("stop")
    assert stopped.value.value == "done"
    assert on()


def test_a_decorated_generator_handles_exceptions_and_closing_in_the_mode():
    seen = []

    @fb.no_grad()
    def numbers():
        try:
            yield 1
        except ValueError:
            seen.append(("caught", on()))
            yield 2
        finally:
            seen.append(("closed", on()))

    generator = numbers()
    next(generator)
    assert generator.throw(ValueError()) == 2
    generator.close()
    assert seen == [("caught", False), ("closed", False)]
    assert on()


def test_decorating_a_class_covers_its_construction_and_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @fb.no_grad()
        class Holder:
            def __init__(self):
                self.made = on()

            def now(self):
                return on()

    assert Holder().made is False
    assert Holder().now() is True


def test_set_grad_enabled_acts_at_once_as_a_function():
    try:
        fb.set_grad_enabled(False)
        assert not on()
    finally:
        fb.set_grad_enabled(True)
    assert on()


@pytest.mark.parametrize("mode", [False, True])
def test_set_grad_enabled_as_a_block_restores_what_was_before_it(mode, x):
    with fb.set_grad_enabled(not mode):
        with fb.set_grad_enabled(mode):
            assert (x * 2).requires_grad is mode
        assert on() is not mode
    assert on()


def test_set_grad_enabled_entered_later_restores_what_was_before_its_construction():
    setting = fb.set_grad_enabled(False)
    assert not on()
    with setting:
        assert not on()
    assert on()


def test_set_grad_enabled_as_a_decorator_changes_nothing_outside_the_function():
    @fb.set_grad_enabled(False)
    def inside():
        return on()

    assert on()
    assert inside() is False
    assert on()


def test_inference_mode_does_not_record(x):
    with fb.inference_mode():
        y = x * 2
    assert not y.requires_grad


def test_inference_mode_false_records_even_within_no_grad(x):
    with fb.no_grad(), fb.inference_mode(False):
        assert (x * 2).requires_grad


def test_other_threads_keep_their_own_mode():
    seen = []
    with fb.no_grad():
        thread = threading.Thread(target=lambda: seen.append(on()), daemon=True)
        thread.start()
        thread.join(60)
    assert seen == [True]


def test_other_tasks_keep_their_own_mode():
    async def without():
        with fb.no_grad():
            await asyncio.sleep(0.002)
            return on()

    async def ordinary():
        await asyncio.sleep(0.001)
        return on()

    async def both():
        return await asyncio.gather(without(), ordinary())

    assert asyncio.run(both()) == [False, True]


def test_backward_runs_under_no_grad_and_is_not_recorded(x):
    y = x * x
    with fb.no_grad():
        y.backward()
    assert x.grad.tolist() == [2.0]
    assert not x.grad.requires_grad


def test_hooks_run_without_recording_unless_create_graph_is_set(x):
    seen = []
    x.register_hook(lambda grad: seen.append(on()))
    (x * 2).backward()
    fb.autograd.grad(x * 2, x, create_graph=True)
    assert seen == [False, True]
    assert on()


def test_inference_mode_is_told_where_it_is_the_innermost_one():
    told = fb.is_inference_mode_enabled

    @fb.inference_mode()
    def within():
        return told()

    @fb.inference_mode(mode=False)
    def without():
        return told()

    @fb.inference_mode
    def steps():
        yield told()
        yield told()

    assert not told()
    with fb.inference_mode():
        assert told()
        with fb.no_grad():
            assert told()
        with fb.inference_mode(mode=False):
            assert not told()
        assert told()
        assert not without()
        others = []
        thread = threading.Thread(target=lambda: others.append(told()))
        thread.start()
        thread.join()
        assert others == [False]
    assert within()
    assert not told()
    generator = steps()
    assert [next(generator), told(), next(generator), told()] == [True, False, True, False]


def test_an_error_ends_inference_mode():
    with pytest.raises(ZeroDivisionError), fb.inference_mode():
        raise ZeroDivisionError
    assert not fb.is_inference_mode_enabled()

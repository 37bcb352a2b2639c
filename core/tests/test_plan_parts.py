"""Plans cut into parts for compilers: the plan's values, draws and errors, in few parts."""

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.plans import Plan, Slot, Step, explain


@pytest.fixture
def parts(monkeypatch):
    """The parts that the backend of ``ref`` was given to compile, as texts."""
    found = []

    def compiler(part, calls):
        found.append(str(part))
        return calls

    backend = type(bind("ref").backend)
    monkeypatch.setattr(backend, "compile_plan", lambda self, plan: plan.in_parts(compiler))
    yield found
    fb.plans.reset()


def same(f, arguments):
    """Whether a compiled function gives what the function gives, in every run."""
    compiled = fb.compile(f)
    results = []
    for call in (f, compiled):
        fb.manual_seed(5)
        results.append([call(*some).tolist() for some in arguments for _ in range(3)])
    assert results[0] == results[1]
    assert explain(compiled).replays > 0


def ref(*values):
    return fb.tensor(values, device="ref")


def test_calls_without_effects_are_one_part(parts):
    same(lambda x, y: (x * y).tanh().sum() + x, [(ref(1.0, 2.0), ref(0.5, 3.0))])
    assert len(parts) == 1
    assert all(op in parts[0] for op in ("mul", "tanh", "sum", "add"))


def test_draws_and_checks_of_arguments_come_before_one_part(parts):
    def f(x, i):
        return (x * 2)[i] * fb.rand(2, device="ref") + fb.rand(2, device="ref")

    same(f, [(ref(1.0, 2.0, 3.0), fb.tensor([2, 0], device="ref"))])
    assert len(parts) == 1
    assert "rand" not in parts[0]


def test_a_check_of_a_computed_index_stands_between_two_parts(parts):
    def f(x, i):
        return (x * 2)[i + 1] * 3 + i

    same(f, [(ref(1.0, 2.0, 3.0), fb.tensor([1, 0], device="ref"))])
    assert len(parts) == 2
    compiled = fb.compile(f)
    for wrong in (0, 0, 0, 7):
        i = fb.tensor([wrong, 0], device="ref")
        if wrong:
            with pytest.raises(IndexError, match="8"):
                compiled(ref(1.0, 2.0, 3.0), i)
        else:
            compiled(ref(1.0, 2.0, 3.0), i)


def test_an_array_that_several_parts_read_is_made_once(parts):
    def f(x, i):
        y = x.exp()
        return y[i + 1] * y[:2] + i

    same(f, [(ref(1.0, 2.0, 3.0), fb.tensor([1, 0], device="ref"))])
    assert sum("= exp(" in part for part in parts) == 1


def test_plans_that_write_into_arguments_are_not_cut():
    step = Step("add_", None, (Slot(0), Slot(0)), Slot(0), effect=True)
    assert Plan([step], [Slot(0)], [Slot(0)]).in_parts(lambda part, calls: calls) is None

"""Random programs agree with PyTorch, and the comparison notices deliberate faults."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import agreement_faults  # noqa: E402 - these need torch
import flambeau  # noqa: E402
from agreement import causes, compare, judge, minimal, report  # noqa: E402
from agreement_generator import draw  # noqa: E402
from agreement_programs import Const, Dtype, Program, Ref, Step, render, replay  # noqa: E402

PROGRAMS = 500
CHUNK = 20

# Seeds whose programs differ on purpose, with the reason (docs/design/agreement.md); values and
# gradients never may.
ACCEPTED: dict[int, str] = {
    191: "PyTorch has no gradient of a write by index into expanded memory",
    306: "integer tensors get no history here, whatever is written into them",
    337: "PyTorch takes a view of a tensor that was written to since for a leaf",
    487: "an operand cast by promotion counts as wanting a gradient that leads nowhere",
}


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_programs_agree_with_torch(first):
    for seed in range(first, first + CHUNK):
        verdict = judge(draw(seed), torch, flambeau)
        if seed in ACCEPTED:
            assert verdict.category not in ("agree", "value", "gradient"), (
                f"seed {seed}: {ACCEPTED[seed]}"
            )
        elif verdict.differences:
            small = minimal(verdict, torch, flambeau)
            code = render(small.program, replay(small.program, torch).errors)
            pytest.fail(f"seed {seed}: {small.differences[0]}\n{code}")


def test_at_most_three_programs_in_two_hundred_are_accepted_as_different():
    assert len(ACCEPTED) <= 0.015 * PROGRAMS


def test_torch_agrees_with_itself():
    verdicts = [judge(draw(seed), torch, torch) for seed in range(100)]
    assert "agree                         100  100.00%" in report(verdicts)


# Of 150 programs, how many must notice the fault.
NOTICED = {
    "no_version_bump": 75,
    "no_leaf_check": 12,
    "detach_has_its_own_version": 12,
    "base_is_not_rebased": 20,
    "gradient_passes_through_changes_of_views": 5,
    "stale_views_keep_their_history": 6,
    "wrong_gradient_of_tanh": 1,
    "views_are_copies": 8,
    "wrong_class_of_index_errors": 8,
    "comparisons_give_bytes": 8,
}


def test_every_planted_fault_has_an_expectation():
    assert set(NOTICED) == set(agreement_faults.FAULTS)


@pytest.mark.parametrize("name", NOTICED)
def test_planted_fault_is_noticed(name):
    noticed = 0
    for seed in range(150):
        program = draw(seed)
        expected = replay(program, torch)
        with agreement_faults.Planted(agreement_faults.FAULTS[name]):
            found = replay(program, torch)
        noticed += bool(compare(program, expected, found).differences)
    assert noticed >= NOTICED[name]


def test_a_program_is_its_seed():
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_dropping_a_step_drops_what_used_its_tensors():
    leaf = Step("tensor", ([1.0],), {"dtype": Dtype("float64")}, (0,))
    program = Program(
        0, (leaf, Step(".exp", (Ref(0),), {}, (1,)), Step(".neg", (Ref(1),), {}, (2,)), leaf)
    )
    assert program.without(1).steps == (leaf, leaf)


class _TwiceAsMuch:
    """PyTorch whose `exp` is doubled."""

    @staticmethod
    def exp(tensor):
        return 2 * torch.exp(tensor)

    def __getattr__(self, name):
        return getattr(torch, name)


def test_disagreeing_program_shrinks_to_the_steps_that_matter():
    leaf = Step("tensor", ([0.5, 1.0],), {"dtype": Dtype("float64"), "requires_grad": True}, (0,))
    steps = (
        leaf,
        Step("*", (Ref(0), 2), {}, (1,)),
        Step("getitem", (Ref(1), slice(0, 1)), {}, (2,)),
        Step("torch.exp", (Ref(0),), {}, (3,)),
        Step(".zero_", (Ref(1),)),
        Step("backward", ([Ref(2)], [Const([1.0], "float64")])),
    )
    verdict = judge(Program(0, steps), torch, _TwiceAsMuch())
    small = minimal(verdict, torch, _TwiceAsMuch())
    assert small.category == "value"
    assert [step.op for step in small.program.steps] == ["tensor", "torch.exp"]
    assert causes([small])[0][0] == "value: torch.exp"


def test_rendered_programs_run_and_make_the_same_tensors():
    for seed in range(40):
        program = draw(seed)
        run = replay(program, torch)
        names: dict = {}
        exec(render(program, run.errors), names)
        for number, tensor in run.tensors.items():
            torch.testing.assert_close(
                names[f"v{number}"].detach(), tensor.detach(), equal_nan=True
            )

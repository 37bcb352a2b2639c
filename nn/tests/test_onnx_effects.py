"""Branches and loops of exported scripts that write to what is outside, and attributes."""

import io

import pytest

import flambeau as fb
from flambeau import nn

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def flat(value):
    return [value] if isinstance(value, fb.Tensor) else [x for each in value for x in flat(each)]


def check(make, *inputs, opset=17, **settings):
    """A script is written for the first inputs; a runtime and the import agree with it for all.

    Each run is one of a new object, since a script keeps the attributes that it sets.
    """
    file = io.BytesIO()
    names = [f"x{at}" for at in range(len(inputs[0]))]
    settings = {"input_names": names, "opset_version": opset} | settings
    fb.manual_seed(0)
    fb.onnx.export(make(), inputs[0], file, **settings)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    again = fb.onnx.load(io.BytesIO(file.getvalue()))
    used = [each.name for each in session.get_inputs()]
    for given in inputs:
        fb.manual_seed(0)
        feed = {n: x.clone() for n, x in zip(names, given, strict=True) if n in used}
        with fb.no_grad():
            wanted = flat(make()(*[x.clone() for x in given]))
            back = flat(again(**feed))
        found = session.run(None, {n: x.numpy() for n, x in feed.items()})
        for want, got, own in zip(wanted, map(fb.from_numpy, found), back, strict=True):
            assert want.dtype is got.dtype is own.dtype
            assert want.shape == got.shape == own.shape
            assert fb.allclose(got, want, 1e-5, 1e-6)
            assert fb.allclose(own, want, 1e-5, 1e-6)


def both_written(x, y):
    sums, counts = x.new_zeros(3), fb.zeros(2, 3)
    view = counts[0]
    if bool(x.sum() > 0):
        sums[:] = x * 2
        view += 1
    else:
        if bool(y.sum() > 0):
            counts[1, 1:] = y[1:]
        sums.add_(y)
    return sums + 1, counts, view * 2


def only_one_written(x, y):
    z = x * 1
    row = z[1:]
    if bool(y.sum() > 0):
        row.mul_(y[1:])
    row = row + 1
    z += y
    return z, row


def written_in_loops(x, y):
    total = fb.zeros(2, 3)
    for at in range(int(y[0])):
        total[at % 2] += x + at
        if bool(total.sum() > 5):
            total[1].neg_()
    return total, total[0] * 2


def nested_loops(x, y):
    counts = fb.zeros(3, dtype=fb.int64)
    seen = x * 1
    for at in range(int(y[0])):
        for other in range(int(y[1])):
            counts += at
            seen[other % 3] = seen[other % 3] + x[0]
    return counts, seen


def while_written(x, y):
    z = x * 1
    while bool(z.sum() < y.sum()):
        z += 1
        z[0] = z[1]
    return z


def read_in_a_branch(x, y):
    """A view of what was written is taken again within a branch, and after it."""
    z = x * 1
    part = z[1:]
    z += 1
    if bool(y.sum() > 0):
        got = part * 2
    else:
        got = part * 3
    return got, part


def given_out_of_branches(x, y):
    """A branch gives what it has written to, and a view of it."""
    z = x * 1
    if bool(y.sum() > 0):
        z += 1
        out, part = z, z[1:]
    else:
        out, part = z * 2, y[1:] * 1
    return z, out, part


PROGRAMS = {
    program.__name__: program
    for program in (
        both_written,
        only_one_written,
        written_in_loops,
        nested_loops,
        while_written,
        read_in_a_branch,
        given_out_of_branches,
    )
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_what_branches_and_loops_write_is_seen_after_them(name):
    given = []
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        x = fb.tensor([0.5, 1.25, 2.0]) * signs[0]
        given.append((x, fb.tensor([3.0, 2.0, 1.0]) * signs[1]))
    check(lambda: fb.jit.script(PROGRAMS[name]), *given)
    check(lambda: fb.jit.script(PROGRAMS[name]), *reversed(given))


def scripted(forward):
    class Setting(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)
            self.register_buffer("count", fb.zeros(2))
            self.kept = fb.ones(2)
            self.times = 1

    Setting.forward = forward
    return lambda: fb.jit.script(Setting())


def sets_attributes(self, x, y):
    self.linear.weight = fb.arange(6.0).reshape(2, 3)
    self.kept = self.kept + self.linear(x)
    self.times = self.times + 2
    return self.kept * self.times, self.linear.bias


def sets_in_a_branch(self, x, y):
    if bool(y.sum() > 0):
        self.kept = self.linear(x)
        self.count = self.count + 1
    else:
        self.count += 3
    return self.kept + self.count


def sets_in_a_loop(self, x, y):
    for at in range(int(y[0])):
        self.kept = self.kept * 2 + at
        self.times += at
        self.count[0] += self.kept[1]
    return self.kept, self.count, self.times * x


def sets_deep_within(self, x, y):
    for at in range(int(y[0])):
        if bool(self.kept.sum() > 3):
            self.kept = self.kept - 1
            self.linear.bias = self.linear.bias + 1
        else:
            self.kept = self.kept + at
    return self.linear(x) + self.kept


SETTING = {
    each.__name__: each
    for each in (sets_attributes, sets_in_a_branch, sets_in_a_loop, sets_deep_within)
}


@pytest.mark.parametrize("name", list(SETTING))
def test_attributes_that_a_script_sets_are_what_it_made_them(name):
    given = [(fb.randn(3), fb.tensor([n, 1.0, 2.0])) for n in (4, -6, 1, 0)]
    check(scripted(SETTING[name]), *given)
    check(scripted(SETTING[name]), *reversed(given))

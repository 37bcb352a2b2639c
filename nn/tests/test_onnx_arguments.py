"""What exported programs are given: None, sizes that become tensors, kinds asked for in scripts."""

import io
import warnings

import pytest

import flambeau as fb
from flambeau.jit import TracerWarning

runtime = pytest.importorskip("onnxruntime")


def session_of(program, args, **options):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error", TracerWarning)
        fb.onnx.export(program, args, file, **options)
    return runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])


def optional(x, y=None, z=None):
    if y is not None:
        return x + y
    return x * 1 if z is None else x - z


@pytest.mark.parametrize("which", ["y", "z", None])
@pytest.mark.parametrize("named", [False, True])
def test_none_is_no_input_of_the_model(which, named):
    x, other = fb.randn(2, 3), fb.randn(2, 3)
    given = {"y": other if which == "y" else None, "z": other if which == "z" else None}
    args = (x, given) if named else (x, *given.values())
    names = ["first", "second"][: 1 if which is None else 2]
    session = session_of(optional, args, input_names=names)
    assert [i.name for i in session.get_inputs()] == names
    feed = dict(zip(names, (x.numpy(), other.numpy()), strict=False))
    assert fb.equal(fb.from_numpy(session.run(None, feed)[0]), optional(x, **given))


def test_a_dictionary_whose_keys_are_no_names_is_an_argument():
    def total(parts):
        return parts["first"] + parts["second"] * 2

    parts = {"first": fb.randn(2), "second": fb.randn(2)}
    session = session_of(total, (parts,))
    names = [i.name for i in session.get_inputs()]
    assert len(names) == 2
    feed = dict(zip(names, (each.numpy() for each in parts.values()), strict=True))
    assert fb.equal(fb.from_numpy(session.run(None, feed)[0]), total(parts))


def test_tensors_of_sizes_are_those_of_each_input():
    def sizes(x):
        return (
            fb.scalar_tensor(x.size(0)),
            fb.scalar_tensor(x.size(1), dtype=fb.int64),
            fb.tensor(x.size(0)),
            fb.tensor([[x.size(1) * 2, 2]], dtype=fb.float32),
            fb.as_tensor(x.shape),
            fb.min(x, fb.tensor(x.size(0), dtype=x.dtype)),
        )

    session = session_of(sizes, fb.ones(2, 3), input_names=["x"], dynamic_axes={"x": [0, 1]})
    x = fb.full((4, 5), 9.0)
    found = session.run(None, {"x": x.numpy()})
    for want, got in zip(sizes(x), found, strict=True):
        assert fb.equal(fb.from_numpy(got), want)
        assert fb.from_numpy(got).dtype is want.dtype


def test_scripts_ask_for_kinds_and_lengths_of_their_inputs():
    @fb.jit.script
    def asks(x, y):
        if x.dtype != y.dtype:
            y = y.to(x.dtype)
        if x.is_floating_point():
            x = x * 2
        return x + y + len(x)

    args = fb.randn(4), fb.tensor(3)
    session = session_of(
        asks, args, input_names=["x", "y"], dynamic_axes={"x": [0]}, enable_onnx_checker=True
    )
    x = fb.randn(6)
    (found,) = session.run(None, {"x": x.numpy(), "y": args[1].numpy()})
    assert fb.allclose(fb.from_numpy(found), asks(x, args[1]))


def test_an_older_name_puts_weights_beside_the_file(tmp_path):
    path = tmp_path / "model.onnx"
    fb.onnx.export(fb.nn.Linear(2, 3), fb.ones(1, 2), path, use_external_data_format=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]

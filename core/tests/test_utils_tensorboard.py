"""Event files hold what was written from tensors."""

from __future__ import annotations

import sys

import pytest

import flambeau as fb


def test_without_either_package_the_import_names_the_remedy(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("flambeau.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ["tensorboard", *(n for n in sys.modules if n.startswith("tensorboard."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboardX"):
        import flambeau.utils.tensorboard  # noqa: F401


def test_scalars_histograms_and_images_of_tensors_are_written(tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    from tensorboardX.proto import event_pb2
    from tensorboardX.record_writer import RecordWriter  # noqa: F401 - the format read below

    from flambeau.utils.tensorboard._by_tensorboardx import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", fb.tensor(0.25, requires_grad=True), 3)
        writer.add_scalars("both", {"a": fb.tensor(1.0), "b": 2.0}, 1)
        writer.add_histogram("weights", fb.arange(10.0), 1)
        writer.add_image("picture", fb.rand(3, 4, 4), 1)
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(None)
    (file,) = [f for f in tmp_path.iterdir() if f.is_file()]
    found = {}
    data = file.read_bytes()
    while data:  # length, its checksum, the event, its checksum
        size = int.from_bytes(data[:8], "little")
        event = event_pb2.Event.FromString(data[12 : 12 + size])
        found |= {v.tag: (event.step, v) for v in event.summary.value}
        data = data[16 + size :]
    assert found["loss"][0] == 3
    assert found["loss"][1].simple_value == 0.25
    assert found["weights"][1].histo.num == 10
    assert found["picture"][1].image.width == 4

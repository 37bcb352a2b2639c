"""Paths that are none, and places where no file can be, end in errors that name them."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed.checkpoint as dcp
from flambeau.serialization import safetensors

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

READERS: dict[str, Callable[[Any], object]] = {
    "load": fb.load,
    "load mapped": lambda path: fb.load(path, mmap=True),
    "load anything": lambda path: fb.load(path, weights_only=False),
    "verify": fb.serialization.verify,
    "safetensors": safetensors.load_file,
    "metadata": safetensors.metadata,
    "jit": fb.jit.load,
    "onnx": fb.onnx.load,
    "summary": fb.onnx.summary,
    "from_file": lambda path: fb.from_file(path, size=4),
    "storage": lambda path: fb.UntypedStorage.from_file(path, size=4),
}
WRITERS: dict[str, Callable[[Any], object]] = {
    "save": lambda path: fb.save([1], path),
    "safetensors": lambda path: safetensors.save_file({"a": fb.ones(2)}, path),
    "jit": lambda path: fb.jit.save(fb.jit.script(fb.nn.ReLU()), path),
    "checkpoint": lambda path: dcp.save({"a": fb.ones(2)}, checkpoint_id=path),
    "shared": lambda path: fb.from_file(path, shared=True, size=4),
    "download": lambda path: fb.hub.download_url_to_file(Path(__file__).as_uri(), path),
}
BOTH = {**{f"{k}, read": v for k, v in READERS.items()}, **WRITERS}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore:load.weights_only=False. runs the code")
@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("path", ["\ud800", "a\0b", Path("a\0b"), Path("x\ud800"), b"a\0b"])
def test_what_no_file_can_be_called_is_said_with_the_name(call: str, path: Any) -> None:
    if isinstance(path, bytes) and not call.startswith(("load", "save")):
        return  # bytes are no path to the others
    with pytest.raises(ValueError, match="a.x00b|ud800") as caught:
        BOTH[call](path)
    assert type(caught.value) is ValueError and "(): " in str(caught.value)
    assert os.listdir() == []


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device without an end")
@pytest.mark.filterwarnings("ignore:load.weights_only=False. runs the code")
@pytest.mark.parametrize("call", READERS)
@pytest.mark.parametrize("device", ["/dev/zero", os.devnull])
def test_a_device_is_no_file_and_is_not_read_to_its_end(call: str, device: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=device):
        READERS[call](device)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("call", ["from_file", "storage"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(call: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(RuntimeError, match="pipe> size <0>"):
        READERS[call]("pipe")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("digest", [None, "other"])
def test_a_download_does_not_take_the_place_of_a_pipe(tmp_path: Path, digest: str | None) -> None:
    os.mkfifo("pipe")
    (tmp_path / "source").write_bytes(b"some bytes")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_bytes()))
    reader.start()
    with nullcontext() if digest is None else pytest.raises(RuntimeError, match="hash value"):
        fb.hub.download_url_to_file((tmp_path / "source").as_uri(), "pipe", digest, False)
    reader.join()
    assert read == [b"some bytes"] and stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert sorted(os.listdir()) == ["pipe", "source"]


@pytest.mark.skipif(os.name != "posix", reason="needs links")
@pytest.mark.parametrize("call", ["save", "safetensors", "jit"])
def test_a_circle_of_links_is_neither_followed_nor_replaced(call: str) -> None:
    os.symlink("second", "first")
    os.symlink("first", "second")
    with pytest.raises(OSError, match="first|second"):
        WRITERS[call]("first")
    assert sorted(os.listdir()) == ["first", "second"] and os.path.islink("first")


def test_a_folder_is_named_where_a_file_should_be() -> None:
    os.mkdir("folder")
    for call in READERS:
        with pytest.raises((OSError, RuntimeError), match="folder"):
            READERS[call]("folder")

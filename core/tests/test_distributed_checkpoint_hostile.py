"""Folders of checkpoints that somebody changed are refused in words of ours."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed.checkpoint as dcp
from flambeau.serialization import CheckpointError

ODD = [None, 3, "x", "../x", [], {}, (2**40, 2**40), (-1,), {"a": 1}, fb.ones(3), b"x", "a\0b"]
LEFT_OUT = object()


def state(fill: float) -> dict[str, Any]:
    return {"m": {"w": fb.full((3, 4), fill)}, "n": fill, "l": [1, {"a": fb.full((2,), fill)}]}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list | tuple) else items
    for key, item in items:
        yield from places(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy in which something else stands at a place."""
    if not path:
        return new
    key, *rest = path
    made = dict(value) if isinstance(value, dict) else list(value)
    made[key] = put(made[key], tuple(rest), new)
    if made[key] is LEFT_OUT:
        del made[key]
    return made if isinstance(made, dict) else type(value)(made)


@pytest.mark.parametrize("which", ["contents", "part"])
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_changed_folder_is_loaded_or_refused_in_words_of_ours(
    tmp_path: Path, which: str, whole: bool
) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    path = tmp_path / ".metadata"
    if which == "part":
        (path,) = tmp_path.glob("*.distcp")
    right = fb.load(path)
    tried = loaded = 0
    for number, at in enumerate(places(right)):
        for odd in [LEFT_OUT, *(ODD if whole else ODD[number % 3 :: 3])]:
            made = put(copy.deepcopy(right), at, odd)
            if made is LEFT_OUT:
                continue
            fb.save(made, path)
            target = state(0.0)
            with suppress(RuntimeError, FileNotFoundError, ValueError):
                dcp.load(target, checkpoint_id=tmp_path)
                loaded += 1
            assert target["m"]["w"].shape == (3, 4)
            tried += 1
    assert tried / 2 > loaded > 0


@pytest.mark.parametrize("name", ["../other", "/tmp/other", "", 3])
def test_contents_name_files_of_their_folder_alone(tmp_path: Path, name: Any) -> None:
    folder = tmp_path / "checkpoint"
    dcp.save(state(1.0), checkpoint_id=folder)
    (part,) = folder.glob("*.distcp")
    part.rename(tmp_path / "other.distcp")
    told = fb.load(folder / ".metadata")
    fb.save({**told, "files": {**told["files"], "n": name}}, folder / ".metadata")
    with pytest.raises(CheckpointError, match="'n' is in no file of the folder"):
        dcp.load({"n": 0}, checkpoint_id=folder)


def test_a_tensor_that_would_be_spread_is_not_what_the_contents_say(tmp_path: Path) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    (part,) = tmp_path.glob("*.distcp")
    fb.save({**fb.load(part), "m.w": fb.ones(4)}, part)
    target = state(0.0)
    with pytest.raises(CheckpointError, match=r"m.w is not what the contents say"):
        dcp.load(target, checkpoint_id=tmp_path)

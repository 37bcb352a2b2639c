"""Data pipes beside PyTorch's: samples, lengths, warnings, errors and which iterator is valid."""

from __future__ import annotations

import functools
import operator
import pickle

import pytest
import torch

from flambeau.compat import torch_alias

pytestmark = pytest.mark.filterwarnings("ignore:(Local|Lambda) function is not supported")

_TEXTS = ["a.png", "b.png", "a.json", "b.json", "a.jpg", "c.json"]


def _stream(t, values=range(7)):
    return t.utils.data.datapipes.iter.IterableWrapper(values)


def _map(t, values=range(7)):
    return t.utils.data.datapipes.map.SequenceWrapper(values)


def _interleaved(pipes):
    found, running = [], [iter(pipe) for pipe in pipes]
    while running:
        for each in list(running):
            try:
                found.append(next(each))
            except StopIteration:
                running.remove(each)
    return found


def _subclass(t):
    data = t.utils.data

    @data.functional_datapipe("times_of_test")
    class Times(data.IterDataPipe):
        resets = 0

        def __init__(self, source, factor=2):
            self.source, self.factor = source, factor

        def __iter__(self):
            return (self.factor * value for value in self.source)

        def reset(self):
            self.resets += 1

    try:
        pipe = _stream(t).times_of_test(factor=3)
        return [list(pipe), list(pipe), pipe.resets, isinstance(pipe, Times)]
    finally:
        del data.IterDataPipe.functions["times_of_test"]


def _newer(t):
    pipe = _stream(t).map(operator.neg)
    first = iter(pipe)
    found = [next(first), next(iter(pipe))]
    return found, next(first)


def _second_pass(t):
    left, right = _stream(t).fork(2)
    found = [next(iter(left)), list(right), list(left), list(right)]
    return found, left.main_datapipe.is_every_instance_exhausted()


def _last_key(t):
    pipe = _stream(t, _TEXTS).groupby(lambda s: s[0], buffer_size=3, keep_key=True)
    return list(pipe)


def _seeded(pipe, passes=2):
    pipe.set_seed(5)
    return [list(pipe) for _ in range(1)] + [pipe.set_shuffle(False) and list(pipe)]


def _global_seed(t):
    t.manual_seed(3)
    pipe = _stream(t).shuffle(buffer_size=3)
    t.manual_seed(4)
    return list(pipe), list(_map(t).shuffle())


def _pickled(t):
    pipe = _stream(t).map(operator.neg).batch(2).shuffle()
    return list(pickle.loads(pickle.dumps(pipe)).set_seed(1))


def _sharded(t):
    data = t.utils.data.datapipes.iter.sharding.SHARDING_PRIORITIES
    pipe = _stream(t, range(11)).sharding_filter()
    pipe.apply_sharding(2, 1, data.DISTRIBUTED)
    pipe.apply_sharding(3, 2, data.MULTIPROCESSING)
    return list(pipe), len(pipe)


def _deterministic(t):
    decorator = t.utils.data.datapipes._decorator

    @decorator.non_deterministic
    class Loose(t.utils.data.IterDataPipe):
        def __iter__(self):
            yield 1

    with decorator.guaranteed_datapipes_determinism():
        Loose()


_CASES = {
    "map": lambda t: list(_stream(t).map(lambda v: v + 1)),
    "map of a column": lambda t: list(
        _stream(t, [(1, 2), (3, 4)]).map(operator.neg, input_col=1, output_col=0)
    ),
    "map of columns": lambda t: list(
        _stream(t, [(1, 2, 5), (3, 4, 6)]).map(operator.add, input_col=[0, 2])
    ),
    "map appends": lambda t: list(
        _stream(t, [(1, 2), (3, 4)]).map(operator.neg, input_col=1, output_col=-1)
    ),
    "map of a key": lambda t: list(_stream(t, [{"a": 1}]).map(str, input_col="a", output_col="b")),
    "map of wrong columns": lambda t: _stream(t).map(lambda a: a, input_col=[0, 1]),
    "map without columns": lambda t: _stream(t).map(lambda a: a, output_col=0),
    "map keyword": lambda t: _stream(t).map(lambda a, *, b: a, input_col=0),
    "filter": lambda t: list(_stream(t).filter(lambda v: v % 2 == 0)),
    "filter of a column": lambda t: list(
        _stream(t, [(1, 2), (3, 0)]).filter(lambda v: v > 1, input_col=1)
    ),
    "filter by numbers": lambda t: list(_stream(t).filter(lambda v: v)),
    "no length": lambda t: len(_stream(t).filter(bool)),
    "batch": lambda t: (list(_stream(t).batch(3)), len(_stream(t).batch(3))),
    "batch drops": lambda t: (
        list(_stream(t).batch(3, drop_last=True)),
        len(_stream(t).batch(3, drop_last=True)),
    ),
    "batch of none": lambda t: _stream(t).batch(0),
    "unbatch": lambda t: list(_stream(t, [[0, [1]], [2]]).unbatch()),
    "unbatch all": lambda t: list(_stream(t, [[0, [1]], [[[2]]]]).unbatch(unbatch_level=-1)),
    "unbatch two": lambda t: list(_stream(t, [[[0, 1]], [[2]]]).unbatch(unbatch_level=2)),
    "unbatch too deep": lambda t: list(_stream(t).unbatch()),
    "collate": lambda t: [x.tolist() for x in _stream(t).batch(2).collate()],
    "collate by": lambda t: list(_stream(t).batch(2).collate(collate_fn=sum)),
    "concat": lambda t: (
        list(_stream(t).concat(_stream(t))),
        len(_stream(t).concat(_stream(t))),
    ),
    "zip": lambda t: (
        list(_stream(t).zip(_stream(t, "ab"))),
        len(_stream(t).zip(_stream(t, "ab"))),
    ),
    "zip of others": lambda t: _stream(t).zip([1, 2]),
    "mux": lambda t: (
        list(_stream(t).mux(_stream(t, "ab"))),
        len(_stream(t).mux(_stream(t, "ab"))),
    ),
    "fork": lambda t: [list(pipe) for pipe in _stream(t).fork(2)],
    "fork in turn": lambda t: _interleaved(_stream(t).fork(3)),
    "fork of one": lambda t: list(_stream(t).fork(1)),
    "fork of none": lambda t: _stream(t).fork(0),
    "fork beyond": lambda t: list(_stream(t).fork(2, buffer_size=3)[0]),
    "fork just within": lambda t: list(_stream(t).fork(2, buffer_size=7)[0]),
    "fork copies": lambda t: [
        a is b for a, b in zip(*_stream(t, [[1], [2]]).fork(2, copy="deep"), strict=True)
    ],
    "fork lengths": lambda t: [len(pipe) for pipe in _stream(t).fork(2)],
    "demux": lambda t: [list(p) for p in _stream(t).demux(2, lambda v: v % 2)],
    "demux in turn": lambda t: _interleaved(_stream(t).demux(3, lambda v: v % 3)),
    "demux drops": lambda t: [
        list(p) for p in _stream(t).demux(2, lambda v: v % 2 if v else None, drop_none=True)
    ],
    "demux refuses": lambda t: list(_stream(t).demux(2, lambda v: v)[0]),
    "demux beyond": lambda t: list(_stream(t).demux(2, lambda v: v % 2, buffer_size=1)[0]),
    "groupby": lambda t: list(_stream(t, _TEXTS).groupby(lambda s: s[0])),
    "groupby of two": lambda t: list(_stream(t, _TEXTS).groupby(lambda s: s[0], group_size=2)),
    "groupby guaranteed": lambda t: list(
        _stream(t, _TEXTS).groupby(
            lambda s: s[0], buffer_size=3, group_size=3, guaranteed_group_size=2
        )
    ),
    "groupby refuses": lambda t: list(
        _stream(t, _TEXTS).groupby(lambda s: s, buffer_size=3, group_size=3)
    ),
    "groupby drops": lambda t: list(
        _stream(t, _TEXTS).groupby(
            lambda s: s[0],
            buffer_size=2,
            group_size=2,
            guaranteed_group_size=2,
            drop_remaining=True,
        )
    ),
    "groupby keys": _last_key,
    "groupby size": lambda t: _stream(t).groupby(str, guaranteed_group_size=2),
    "shuffle": lambda t: _seeded(_stream(t).shuffle(buffer_size=3)),
    "shuffle nothing": lambda t: _stream(t).shuffle(buffer_size=0),
    "shuffle unbatches": lambda t: list(
        _stream(t, [[1, 2], [3]]).shuffle(unbatch_level=1).set_seed(1)
    ),
    "shuffle by the generator": _global_seed,
    "sampler": lambda t: list(
        t.utils.data.datapipes.iter.Sampler(_stream(t), t.utils.data.SequentialSampler)
    ),
    "sharding": _sharded,
    "sharding refuses": lambda t: _stream(t).sharding_filter().apply_sharding(2, 2),
    "read": lambda t: [
        (name, list(text)) for name, text in _stream(t, [("a", "bc")]).map(lambda v: v)
    ],
    "maps": lambda t: [
        _map(t).map(operator.neg)[3],
        list(_map(t).batch(3)),
        len(_map(t).batch(3, drop_last=True)),
        list(_map(t).concat(_map(t, "ab"))),
        list(_map(t).zip(_map(t, "ab"))),
        _map(t, {"a": 1})["a"],
    ],
    "map beyond": lambda t: _map(t).concat(_map(t))[14],
    "map zip beyond": lambda t: _map(t).zip(_map(t, "ab"))[2],
    "map shuffle": lambda t: list(_map(t).shuffle().set_seed(0)),
    "loader": lambda t: [x.tolist() for x in t.utils.data.DataLoader(_stream(t), batch_size=3)],
    "loader of maps": lambda t: [
        x.tolist() for x in t.utils.data.DataLoader(_map(t).map(operator.neg), batch_size=4)
    ],
    "subclass": _subclass,
    "newer iterator": _newer,
    "second pass of a child": _second_pass,
    "pickle": _pickled,
    "chunk": lambda t: [
        t.utils.data.datapipes.datapipe.DataChunk([1, 2]).as_str("-"),
        [*t.utils.data.datapipes.datapipe.DataChunk("ab").raw_iterator()],
    ],
    "partial": lambda t: list(_stream(t).map(functools.partial(operator.add, 2))),
    "unknown method": lambda t: _stream(t).nothing,
    "not deterministic": _deterministic,
    "text": lambda t: repr(_stream(t).batch(2)),
}


def _outcome(call, library):
    import importlib

    for path in ("iter", "map", "iter.sharding", "datapipe", "_decorator"):
        importlib.import_module(f"torch.utils.data.datapipes.{path}")
    try:
        return call(library)
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:Some child DataPipes are not exhausted:UserWarning")
@pytest.mark.parametrize("name", _CASES)
def test_pipes_give_what_pipes_of_pytorch_give(name):
    expected = _outcome(_CASES[name], torch)
    with torch_alias() as alias:
        found = _outcome(_CASES[name], alias)
    assert found == expected


def test_files_are_listed_opened_and_read_alike(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.txt", "a.txt", "c.md", "inner/d.txt"):
        (tmp_path / name).write_text(f"text of {name}")

    def run(t):
        from torch.utils.data.datapipes.iter import FileLister, FileOpener, StreamReader

        flat = FileLister(str(tmp_path), masks="*.txt")
        deep = FileLister([str(tmp_path)], recursive=True, length=4)
        texts = StreamReader(FileOpener(FileLister(str(tmp_path), "*.txt")), chunk=4)
        binary = FileOpener(FileLister(str(tmp_path), ["*.md"]), mode="b")
        found = [list(flat), list(deep), len(deep), list(texts)]
        return [*found, [stream.read() for _, stream in binary]]

    expected = run(torch)
    assert expected[3]
    with torch_alias() as alias:
        assert run(alias) == expected

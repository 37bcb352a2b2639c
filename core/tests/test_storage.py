"""Storages: shared memory of tensors, their bytes, their life in other processes."""

import copy
import multiprocessing
import os
import pickle

import pytest

import flambeau as fb
from flambeau._types.dtype import ALL as ALL_DTYPES


def test_aliases_have_equal_storages_and_copies_have_others(device):
    x = fb.arange(6.0, device=device).reshape(2, 3)
    same = [x, x[1:], x.t(), x.detach(), x.data, x.view(-1)[2:]]
    assert all(y.untyped_storage() == x.untyped_storage() for y in same)
    assert len({y.untyped_storage() for y in same}) == 1
    assert x.clone().untyped_storage() != x.untyped_storage()


def test_a_write_through_a_storage_is_seen_by_every_tensor_and_not_counted(device):
    x = fb.arange(6.0, device=device)
    view, other = x.view(2, 3)[1], x.detach()
    before = x._version
    storage = x.storage()
    storage[4] = 40
    storage[:2] = -1
    assert x.tolist() == [-1, -1, 2, 3, 40, 5]
    assert view.tolist() == [3, 40, 5]
    assert other.tolist() == x.tolist()
    assert x._version == before


def test_a_write_to_a_tensor_is_seen_through_its_storage(device):
    x = fb.arange(4, device=device)
    storage = x[2:].storage()
    x.mul_(10)
    assert storage.tolist() == [0, 10, 20, 30]
    assert storage[-1] == 30
    assert list(storage) == storage.tolist()


def test_a_storage_measures_itself_in_elements_and_bytes(device):
    x = fb.zeros(3, 2, dtype=fb.int16, device=device)
    typed, untyped = x[1:].storage(), x.untyped_storage()
    assert (typed.size(), len(typed), typed.nbytes(), typed.element_size()) == (6, 6, 12, 2)
    assert (untyped.size(), len(untyped), untyped.nbytes(), untyped.element_size()) == (
        *(12, 12, 12, 1),
    )
    assert typed.untyped() == untyped
    assert typed.dtype is fb.int16
    assert typed.device == x.device
    assert not fb.zeros(0, device=device).storage()


@pytest.mark.parametrize("index", [4, -5])
def test_an_index_out_of_range_is_refused(device, index):
    storage = fb.zeros(4, device=device).storage()
    with pytest.raises(IndexError, match=f"index {index} out of range for storage of size 4"):
        storage[index]
    with pytest.raises(IndexError):
        storage[index] = 1


def test_slices_have_step_one(device):
    storage = fb.arange(4, device=device).storage()
    assert storage[1:3].tolist() == [1, 2]
    assert storage[3:1].tolist() == []
    with pytest.raises(RuntimeError, match="only a step of 1 is supported"):
        storage[::2]


def test_a_slice_of_a_storage_converts_like_a_storage(device):
    part = fb.arange(4, device=device).storage()[1:3]
    assert part.double().tolist() == [1.0, 2.0]
    assert fb.zeros(2, device=device).copy_(fb.tensor(part.tolist())).tolist() == [1, 2]


def test_a_slice_of_a_storage_is_an_alias_on_the_cpu():
    x = fb.arange(4)
    x.storage()[1:3].fill_(7)
    assert x.tolist() == [0, 7, 7, 3]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_has_a_storage_class_that_round_trips(dtype):
    x = fb.tensor([0, 1, 1], dtype=dtype)
    kind = x.storage_type()
    storage = kind([0, 1, 1])
    assert isinstance(storage, kind)
    assert isinstance(x.storage(), kind)
    assert storage.tolist() == x.tolist() == x.storage().tolist()
    assert type(storage.tolist()[0]) is type(x.tolist()[0])
    assert x.storage().type() == f"torch.{kind.__name__}"
    assert storage.copy_(kind([1, 0, 1])).tolist() == kind([1, 0, 1]).tolist()
    assert pickle.loads(pickle.dumps(storage)).tolist() == storage.tolist()


def test_conversions_are_named_as_dtypes(device):
    storage = fb.tensor([1.5, 0.0, 3.0], device=device).storage()
    expected = {
        "bool": [True, False, True],
        "byte": [1, 0, 3],
        "char": [1, 0, 3],
        "short": [1, 0, 3],
        "int": [1, 0, 3],
        "long": [1, 0, 3],
        "half": [1.5, 0, 3],
        "bfloat16": [1.5, 0, 3],
        "float": [1.5, 0, 3],
        "double": [1.5, 0, 3],
        "complex_float": [1.5, 0, 3],
        "complex_double": [1.5, 0, 3],
    }
    for name, values in expected.items():
        assert getattr(storage, name)().tolist() == values, name
    assert storage.type("torch.IntStorage").dtype is fb.int32
    assert storage.type(fb.LongStorage).dtype is fb.int64
    assert storage.type(fb.float32) is storage
    with pytest.raises(ValueError, match="invalid type"):
        storage.type("torch.NoStorage")


def test_copies_share_nothing(device):
    storage = fb.arange(3, device=device).storage()
    for other in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        assert other != storage
        assert other.tolist() == [0, 1, 2]
        other.fill_(9)
    assert storage.tolist() == [0, 1, 2]
    assert storage.new().size() == 0


def test_what_shares_memory_shares_it_in_a_deep_copy(device):
    x = fb.arange(6.0, device=device)
    views = [x, x[1:], x.reshape(2, 3).t(), x.detach()]
    first, rest, turned, same = copy.deepcopy(views)
    first[1] = 9
    assert (rest[0].item(), turned[1, 0].item(), same[1].item()) == (9, 9, 9)
    assert (rest.storage_offset(), turned.stride()) == (1, views[2].stride())
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert first.untyped_storage() != x.untyped_storage()


def test_storages_and_their_tensors_share_memory_in_a_deep_copy(device):
    x = fb.arange(3.0, device=device)
    for parts in ([x, x.storage(), x.untyped_storage()], [x[1:].storage(), x, x.untyped_storage()]):
        copies = copy.deepcopy(parts)
        assert len({part.data_ptr() for part in copies}) == 1
        next(part for part in copies if isinstance(part, fb.Tensor))[0] = 5
        assert copies[0].tolist()[0] == copies[1].tolist()[0] == 5
    assert x.tolist() == [0, 1, 2]


def test_a_shallow_copy_is_another_tensor_over_the_same_memory(device):
    x = fb.ones(3, device=device, requires_grad=True)
    x.name_of_it = "weights"
    y = copy.copy(x)
    with fb.no_grad():
        y[0] = 4
        x[1] = 5
    assert x.tolist() == y.tolist() == [4, 5, 1]
    assert (y.requires_grad, y.is_leaf, y.name_of_it) == (True, True, "weights")
    y.sum().backward()
    assert x.grad is None
    assert y.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="non-leaf"):
        copy.copy(x * 2)


def test_a_deep_copy_shares_memory_whatever_asks_for_gradients(device):
    x = fb.ones(3, device=device, requires_grad=True)
    copied, alias = copy.deepcopy([x, x.detach()])
    with fb.no_grad():
        copied[0] = 7
    assert alias.tolist() == [7, 1, 1]
    assert (copied.requires_grad, alias.requires_grad) == (True, False)
    assert copied.is_leaf


def test_copy_from_a_longer_storage_is_refused(device):
    with pytest.raises(RuntimeError, match="size does not match, self was 8 bytes but src was 16"):
        fb.zeros(2, device=device).storage().copy_(fb.zeros(4).storage())


def test_copy_casts_between_dtypes(device):
    x = fb.zeros(3, device=device)
    x.storage().copy_(fb.IntStorage([1, 2]))
    assert x.tolist() == [1, 2, 0]


@pytest.mark.parametrize("arguments", [(1, 2), ("x", 1), (2.5,), (None,)])
def test_a_storage_of_anything_else_is_refused(arguments):
    for kind in (fb.FloatStorage, fb.UntypedStorage, fb.TypedStorage):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            kind(*arguments)


def test_set_makes_an_alias_of_a_part_of_a_storage(device):
    source = fb.arange(6.0, device=device)
    for storage in (source, source.storage()):
        x = fb.zeros(0, device=device).set_(storage, 1, (2, 2), (3, 1))
        assert x.tolist() == [[1, 2], [4, 5]]
        assert (x.storage_offset(), x.stride()) == (1, (3, 1))
        x[0, 0] = -1
        assert source[1] == -1
        source[1] = 1
        assert x[0, 0] == 1
    assert fb.ones(2, device=device).set_().shape == (0,)


def test_a_tensor_that_took_another_storage_is_not_changed_by_its_former_one(device):
    former = fb.zeros(2, device=device)
    x = former.detach()
    x.set_(fb.ones(2, device=device))
    former.fill_(5)
    assert x.tolist() == [1, 1]


def test_set_beyond_the_end_makes_the_storage_longer():
    storage = fb.FloatStorage([1, 2])
    x = fb.zeros(0).set_(storage, 1, (3,))
    assert x.tolist() == [2, 0, 0]
    assert storage.size() == 4


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: x.set_(fb.DoubleStorage(2)), RuntimeError, "Expected a Storage of type"),
        (lambda x: x.set_(fb.arange(2)), RuntimeError, "Could not set tensor of type"),
        (lambda x: x.set_(x.storage(), -1, (1,)), RuntimeError, "invalid storage offset -1"),
        (lambda x: x.set_(x.storage(), 0, (1,), (-1,)), RuntimeError, "negative strides"),
        (lambda x: x.set_(3), TypeError, "must be a Tensor or a Storage, not int"),
        (lambda x: x.requires_grad_().set_(fb.zeros(1)), RuntimeError, "a leaf Variable"),
    ],
)
def test_impossible_sets_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call(fb.zeros(2))


def test_tensors_follow_a_storage_that_grows():
    x = fb.arange(4)
    view, twin = x[1:3], x.data
    x.storage().resize_(6)
    assert x.storage().tolist() == [0, 1, 2, 3, 0, 0]
    view.fill_(8)
    assert x.tolist() == twin.tolist() == [0, 8, 8, 3]
    assert view.untyped_storage() == x.untyped_storage()


def test_a_storage_does_not_shrink_below_a_living_tensor():
    x = fb.arange(4)
    storage = x.storage()
    view = fb.tensor([], dtype=x.dtype).set_(storage, 0, (2,))
    with pytest.raises(RuntimeError, match="uses 32 bytes of this storage"):
        storage.resize_(2)
    del x
    storage.resize_(2)
    assert view.tolist() == storage.tolist() == [0, 1]


def test_view_as_another_dtype_shares_memory_on_the_cpu():
    x = fb.arange(4.0)
    bits = x.view(fb.int32)
    bits[1] = 0
    assert x.tolist() == [0, 0, 2, 3]
    assert bits._version == x._version == 1
    assert bits.untyped_storage() == x.untyped_storage()
    assert x[2:].view(fb.float64).as_strided((2,), (1,), 0).shape == (2,)


def test_view_as_another_dtype_is_a_copy_without_strides():
    x = fb.ones(2, device="ref")
    bits = x.view(fb.int32)
    assert bits.tolist() == [0x3F800000] * 2
    bits.zero_()
    assert x.tolist() == [1, 1]
    assert fb.ones(2, 2, device="meta").view(fb.uint8).shape == (2, 8)


def test_a_buffer_of_bfloat16_is_read_and_written_where_it_lies(device):
    memory = bytearray(bytes.fromhex("803f00404040"))
    x = fb.frombuffer(memory, dtype=fb.bfloat16)
    assert x.to(device).tolist() == [1, 2, 3]
    x[0] = 7
    assert memory.hex() == "e04000404040"
    assert (x.dtype, x.stride(), x.untyped_storage().nbytes()) == (fb.bfloat16, (1,), 6)


def test_memory_of_others_becomes_bfloat16_by_the_backend(monkeypatch):
    asked, backend = [], type(fb.plugin.host.host.activate("cpu").backend)
    reinterpret = backend.reinterpret

    def noted(self, root, dtype):
        asked.append(dtype)
        return reinterpret(self, root, dtype)

    monkeypatch.setattr(backend, "reinterpret", noted)
    x = fb.arange(24, dtype=fb.bfloat16).reshape(4, 6)
    y = fb.from_dlpack(x[1:, ::2])
    assert asked == [fb.bfloat16]
    assert (y.shape, y.stride(), y[2, 1].item()) == ((3, 3), (6, 2), 20)
    y[0, 0] = 100
    assert x[1, 0].item() == 100
    for empty in (fb.zeros(0, 3, dtype=fb.bfloat16), fb.ones((), dtype=fb.bfloat16)):
        assert fb.from_dlpack(empty).tolist() == empty.tolist()


def test_buffers_are_read_in_their_byte_order():
    data = bytes([0, 1, 0, 2, 0, 3])
    assert fb.ShortStorage.from_buffer(data, "big").tolist() == [1, 2, 3]
    assert fb.ShortStorage.from_buffer(data, "little").tolist() == [256, 512, 768]
    assert fb.ShortStorage.from_buffer(data, "big", 1, 2).tolist() == [2]
    assert fb.ByteStorage.from_buffer(data).tolist() == list(data)
    assert fb.BoolStorage.from_buffer(data).tolist() == [b != 0 for b in data]
    with pytest.raises(ValueError, match="expected 'big', 'little', or 'native'"):
        fb.ShortStorage.from_buffer(data, "middle")
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        fb.IntStorage.from_buffer(data, "native")
    with pytest.raises(ValueError, match="only 3 elements"):
        fb.ShortStorage.from_buffer(data, "native", 4)
    with pytest.raises(RuntimeError, match="byte_order"):
        fb.ShortStorage.from_buffer(data)


def test_byteswap_undoes_itself():
    storage = fb.IntStorage([1, 2])
    untyped = storage.untyped()
    untyped.byteswap(fb.int32)
    assert storage.tolist() == [1 << 24, 2 << 24]
    untyped.byteswap(fb.int32)
    assert storage.tolist() == [1, 2]


def test_a_shared_file_receives_writes_and_a_private_one_does_not(tmp_path):
    path = tmp_path / "numbers"
    shared = fb.IntStorage.from_file(path, shared=True, size=3)
    shared[1] = 5
    assert path.read_bytes() == b"\0\0\0\0\5\0\0\0\0\0\0\0"
    assert shared.is_shared()
    assert shared.filename == str(path)
    private = fb.IntStorage.from_file(str(path))
    assert private.tolist() == [0, 5, 0]
    private[0] = 1
    assert shared.tolist() == [0, 5, 0]
    assert not private.is_shared()
    with pytest.raises(RuntimeError, match="size <12> is smaller than the required mapping"):
        fb.IntStorage.from_file(path, size=4)
    with pytest.raises(RuntimeError, match="in read-only mode: No such file"):
        fb.IntStorage.from_file(tmp_path / "absent", size=4)
    with pytest.raises(RuntimeError, match="not resizable"):
        shared.resize_(9)


def test_sharing_moves_every_alias_and_keeps_the_values():
    x = fb.arange(5.0)
    view, twin = x[2:], x.data
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert view.is_shared()
    assert twin.is_shared()
    view.fill_(9)
    assert x.tolist() == twin.tolist() == [0, 1, 9, 9, 9]
    assert x.untyped_storage().share_memory_() == x.untyped_storage()


@pytest.mark.parametrize("other", ["view", "alias", "other dtype", "part"])
def test_whoever_sees_the_memory_of_a_tensor_follows_it(other):
    x = fb.zeros(4)
    seen = {
        "view": lambda: x.view(2, 2),
        "alias": lambda: x.detach(),
        "other dtype": lambda: x.view(fb.int32),
        "part": lambda: x[1:],
    }[other]()
    x.share_memory_()
    x.fill_(1.0)
    assert seen.is_shared()
    assert seen.view(fb.float32).unique().tolist() == [1.0]


@pytest.mark.parametrize("kept", ["a view", "data", "with attributes"])
def test_whoever_sees_memory_follows_it_when_it_is_shared(kept):
    made = fb.UntypedStorage(8)
    seen = fb.empty(0).set_(made.copy_(fb.tensor([1.0, 2.0]).untyped_storage()))
    if kept == "with attributes":
        seen.__dict__["note"] = 1
    other = {"a view": seen[1:], "data": seen.data}.get(kept, seen)
    made.share_memory_()
    fb.empty(0).set_(made).fill_(5.0)
    assert seen.tolist() == [5.0, 5.0]
    assert set(other.tolist()) == {5.0}


@pytest.mark.parametrize("cls", [fb.UntypedStorage, fb.DoubleStorage])
def test_nobody_is_looked_for_when_memory_is_shared_that_no_tensor_sees(cls, monkeypatch):
    monkeypatch.setattr("gc.get_objects", None)
    monkeypatch.setattr("gc.get_referrers", None)
    assert cls(4).share_memory_().is_shared()
    kept = cls(4)
    kept.resize_(6)
    assert len(kept) == 6


def test_nobody_is_looked_for_when_only_one_tensor_sees_the_memory(monkeypatch):
    monkeypatch.setattr("gc.get_referrers", None)
    made = fb.ones(3)
    alone = made.detach()  # as parameters are of what they were made of
    del made
    assert alone.share_memory_().is_shared()
    assert alone.tolist() == [1, 1, 1]


def test_shared_memory_has_no_name_that_could_stay_behind():
    x = fb.zeros(1000).share_memory_()
    assert x.is_shared()
    if os.path.isdir("/dev/shm"):
        mine = f"flambeau_{os.getpid()}_"
        assert not [name for name in os.listdir("/dev/shm") if name.startswith(mine)]


@pytest.mark.parametrize("where", ["ref", "meta"])
def test_memory_of_other_devices_is_not_shared(where):
    with pytest.raises(NotImplementedError, match=f"memory of device {where} cannot be shared"):
        fb.zeros(2, device=where).share_memory_()


def _double(queue, done):
    for t in iter(queue.get, None):
        t.mul_(2)
        done.put(t.untyped_storage().nbytes())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_writes_into_shared_memory(method):
    x = fb.arange(4.0).share_memory_()
    context = multiprocessing.get_context(method)
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=_double, args=(queue, done), daemon=True)
    child.start()
    try:
        for t in (x, x[1:3]):
            queue.put(t)
            assert done.get(timeout=60) == 16
        assert x.tolist() == [0, 4, 8, 6]
    finally:
        queue.put(None)
        child.join(60)
    assert child.exitcode == 0


def test_storages_without_data_or_device_say_so():
    meta = fb.zeros(3, device="meta").storage()
    assert meta.nbytes() == 12
    assert repr(meta).startswith("...")
    with pytest.raises(NotImplementedError):
        meta.tolist()
    with pytest.raises(RuntimeError, match="cuda"):
        fb.FloatStorage([1]).cuda()


def test_is_storage_knows_both_kinds():
    x = fb.ones(1)
    assert fb.is_storage(x.storage())
    assert fb.is_storage(x.untyped_storage())
    assert not fb.is_storage(x)


def test_vectors_over_files_share_their_numbers(tmp_path):
    path = tmp_path / "numbers"
    shared = fb.from_file(str(path), shared=True, size=4, dtype=fb.int16)
    shared.copy_(fb.arange(4))
    assert path.read_bytes() == bytes([0, 0, 1, 0, 2, 0, 3, 0])
    own = fb.from_file(str(path), size=2, dtype=fb.int16)
    own += 5
    assert own.tolist() == [5, 6] and shared.tolist() == [0, 1, 2, 3]
    assert fb.from_file(str(path)).shape == (0,)
    with pytest.raises(RuntimeError):
        fb.from_file(str(path), size=100, dtype=fb.int16)
    with pytest.raises(RuntimeError, match="memory of the CPU"):
        fb.from_file(str(path), size=1, device="meta")


def test_memory_that_no_device_has_is_refused_with_its_size(device):
    for make in (fb.UntypedStorage, fb.UntypedStorage(0, device=device).resize_):
        on = {"device": device} if make is fb.UntypedStorage else {}
        with pytest.raises(fb.OutOfMemoryError, match=f"Tried to allocate {2**62} bytes"):
            make(2**62, **on)
        for size in (2**63, 2**70):
            with pytest.raises(RuntimeError, match=f"overflowed: {size} bytes"):
                make(size, **on)

"""DLPack: tensors cross to PyTorch and NumPy and back over the same memory."""

import gc
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import flambeau as fb  # noqa: E402
from flambeau.utils.dlpack import from_dlpack, to_dlpack  # noqa: E402

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()

EXPORTS = {
    "torch.from_dlpack": torch.from_dlpack,
    "capsule": lambda t: torch.utils.dlpack.from_dlpack(to_dlpack(t)),
}
IMPORTS = {
    "fb.from_dlpack": fb.from_dlpack,
    "capsule": lambda t: from_dlpack(torch.utils.dlpack.to_dlpack(t)),
    "utils": from_dlpack,
}


class Old:
    """A library that speaks the first protocol only: no keyword, no version."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return torch.utils.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
@pytest.mark.parametrize("name", DTYPES)
def test_exported_tensors_share_memory_in_every_dtype(name, export):
    ours = fb.zeros(2, 3, dtype=getattr(fb, name))
    theirs = export(ours)
    assert theirs.dtype is getattr(torch, name)
    assert theirs.shape == (2, 3)
    theirs[0, 1] = 1
    assert ours[0, 1].item() == 1
    ours[1, 2] = 1
    assert theirs[1, 2].item() == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[1:, ::2],
        lambda t: t[1, 2],
        lambda t: t.unsqueeze(1).expand(4, 2, 5),
        lambda t: t.diagonal(1),
        lambda t: t[:0],
        lambda t: t.as_strided((2, 2), (1, 3), 4),
    ],
)
def test_exported_views_keep_shape_strides_and_offset(view):
    base = fb.arange(20.0).view(4, 5)
    ours, expected = view(base), view(torch.arange(20.0).view(4, 5))
    theirs = torch.from_dlpack(ours)
    assert theirs.tolist() == expected.tolist()
    assert theirs.shape == expected.shape
    if theirs.numel() > 1:
        strides = zip(theirs.shape, theirs.stride(), expected.stride(), strict=True)
        assert all(a == b for n, a, b in strides if n > 1)
        assert (
            theirs.data_ptr() - torch.from_dlpack(base).data_ptr() == expected.storage_offset() * 4
        )


def test_exported_memory_stays_shared_when_the_tensor_is_written_in_place():
    ours = fb.ones(3) * 2
    theirs = torch.from_dlpack(ours)
    ours.mul_(3)
    ours += 1
    ours[0] = 0
    assert theirs.tolist() == [0.0, 7.0, 7.0]


def test_exported_memory_outlives_the_tensor():
    theirs = torch.from_dlpack(fb.full((100_000,), 3.0))
    gc.collect()
    other = fb.zeros(100_000)
    assert theirs.sum().item() == 300_000.0
    assert other.sum().item() == 0.0


def test_numpy_and_flambeau_read_exported_tensors():
    ours = fb.zeros(3)
    np.from_dlpack(ours)
    again = fb.from_dlpack(ours)
    again[0] = 1
    assert ours.tolist() == [1.0, 0.0, 0.0]


def test_tensors_that_require_a_gradient_are_not_exported():
    ours = fb.ones(2, requires_grad=True)
    for export in (*EXPORTS.values(), np.from_dlpack, lambda t: t.__dlpack__()):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
            export(ours)
    assert torch.from_dlpack(ours.detach()).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("device", ["ref", "meta"])
def test_devices_without_visible_memory_say_so(device):
    for ask in (to_dlpack, fb.Tensor.__dlpack_device__):
        with pytest.raises(BufferError, match=f"device '{device}' cannot be exported"):
            ask(fb.ones(2, device=device))


def test_the_device_is_the_cpu():
    assert fb.ones(2).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("take", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize("name", DTYPES)
def test_imported_tensors_share_memory_in_every_dtype(name, take):
    theirs = torch.zeros(2, 3, dtype=getattr(torch, name))
    ours = take(theirs)
    assert ours.dtype is getattr(fb, name)
    assert ours.shape == (2, 3)
    assert not ours.requires_grad
    ours[0, 1] = 1
    assert theirs[0, 1].item() == 1
    theirs[1, 2] = 1
    assert ours[1, 2].item() == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[1:, ::2],
        lambda t: t[1, 2],
        lambda t: t.unsqueeze(1).expand(4, 2, 5),
        lambda t: t.diagonal(1),
        lambda t: t[:0],
        lambda t: t[:, :0].t(),
    ],
)
def test_imported_views_keep_shape_and_strides(view):
    theirs = view(torch.arange(20.0).view(4, 5))
    ours = fb.from_dlpack(theirs)
    assert ours.tolist() == theirs.tolist()
    assert ours.shape == theirs.shape
    assert ours.is_contiguous() == theirs.is_contiguous()
    if theirs.numel() > 1:
        assert ours.data_ptr() == theirs.data_ptr()
        strides = zip(theirs.shape, ours.stride(), theirs.stride(), strict=True)
        assert all(a == b for n, a, b in strides if n > 1)


def test_imported_memory_stays_shared_when_the_tensor_is_written_in_place():
    theirs = torch.ones(3)
    ours = fb.from_dlpack(theirs)
    ours.mul_(3)
    ours += 1
    ours[0] = 0
    assert theirs.tolist() == [0.0, 4.0, 4.0]


def test_imported_tensors_can_be_computed_with_and_recorded():
    theirs = torch.tensor([1.0, 2.0])
    ours = fb.from_dlpack(theirs).requires_grad_()
    (ours * ours).sum().backward()
    assert ours.grad.tolist() == [2.0, 4.0]
    assert theirs.tolist() == [1.0, 2.0]


def test_imported_memory_is_released_with_the_last_tensor_over_it():
    array = np.zeros(8)
    before = sys.getrefcount(array)
    ours = fb.from_dlpack(array)
    part = ours[2:]
    assert sys.getrefcount(array) > before
    del ours
    part[0] = 5.0
    assert array[2] == 5.0
    del part
    assert sys.getrefcount(array) == before


def test_memory_of_an_unused_capsule_is_released():
    array = np.zeros(8)
    gone = weakref.ref(array)
    capsule = fb.from_dlpack(array).__dlpack__()
    del array
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


def test_a_capsule_is_used_once():
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        from_dlpack(capsule)


def test_libraries_of_the_first_protocol_are_understood():
    theirs = torch.zeros(2)
    ours = fb.from_dlpack(Old(theirs))
    ours[0] = 1
    assert theirs.tolist() == [1.0, 0.0]


def test_read_only_memory_stays_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    ours = fb.from_dlpack(array)
    assert (ours + 1).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        ours.fill_(1)
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_negative_strides_are_refused():
    with pytest.raises(BufferError, match="negative strides"):
        fb.from_dlpack(np.arange(3.0)[::-1])


def test_element_types_without_counterpart_are_refused():
    with pytest.raises(BufferError, match="8-bit type code 10"):
        fb.from_dlpack(torch.zeros(2).to(torch.float8_e4m3fn))


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_integers_are_shared(name):
    x = np.arange(3, dtype=name)
    assert fb.from_dlpack(x).dtype is getattr(fb, name)
    assert torch.from_dlpack(fb.from_dlpack(x)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("thing", [3, "text", [1.0]])
def test_other_objects_are_refused(thing):
    with pytest.raises(TypeError, match="__dlpack__"):
        fb.from_dlpack(thing)


def test_tensors_of_torch_that_require_a_gradient_are_refused_by_torch():
    with pytest.raises(BufferError, match="require gradient"):
        fb.from_dlpack(torch.ones(2, requires_grad=True))


def test_copy_and_device_are_honoured():
    theirs = torch.zeros(2)
    copied = fb.from_dlpack(theirs, copy=True)
    copied[0] = 1
    assert theirs.tolist() == [0.0, 0.0]
    assert fb.from_dlpack(theirs, device="cpu", copy=False).data_ptr() == theirs.data_ptr()
    assert fb.from_dlpack(theirs, device="ref").device.type == "ref"
    with pytest.raises(BufferError, match="needs a copy"):
        fb.from_dlpack(theirs, device="ref", copy=False)


@pytest.mark.parametrize("name", DTYPES)
def test_there_and_back_is_the_same_memory(name):
    ours = fb.ones(2, 3, dtype=getattr(fb, name)).t()
    back = fb.from_dlpack(torch.from_dlpack(ours))
    assert back.data_ptr() == ours.data_ptr()
    assert back.stride() == ours.stride()
    assert back.dtype is ours.dtype


def outcome(library, buffer, options):
    try:
        return library.frombuffer(buffer, **options).tolist()
    except (ValueError, RuntimeError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
@pytest.mark.parametrize("kind", [bytearray, bytes, memoryview])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"offset": 4},
        {"offset": 4, "count": 2},
        {"count": 1, "offset": 3},
        {"offset": 5},
        {"offset": 16},
        {"offset": -4},
        {"count": 0},
        {"count": 5},
        {"count": -2},
    ],
    ids=str,
)
def test_frombuffer_reads_and_refuses_what_torch_does(options, kind):
    data = kind(bytes(range(16)))
    ours = outcome(fb, data, {"dtype": fb.int32, **options})
    assert ours == outcome(torch, data, {"dtype": torch.int32, **options})


@pytest.mark.parametrize("name", DTYPES)
def test_frombuffer_shares_memory_in_every_dtype(name):
    data = bytearray(48)
    ours = fb.frombuffer(data, dtype=getattr(fb, name), offset=16)
    theirs = torch.frombuffer(data, dtype=getattr(torch, name), offset=16)
    ours[1] = 1
    assert theirs.to(torch.complex128).tolist() == ours.to(fb.complex128).tolist()
    assert theirs[1].item() == 1


def test_frombuffer_may_require_a_gradient():
    assert fb.frombuffer(bytearray(8), dtype=fb.float32, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        fb.frombuffer(bytearray(8), dtype=fb.int32, requires_grad=True)


def test_frombuffer_warns_of_read_only_buffers_and_never_writes_to_them():
    data = bytes(8)
    with pytest.warns(UserWarning, match="not writable"):
        ours = fb.frombuffer(data, dtype=fb.float32)
    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        ours.fill_(1)
    assert data == bytes(8)


@pytest.mark.parametrize("buffer", [[1.0], 3, np.ones((2, 2))[:, :1]])
def test_frombuffer_refuses_what_is_no_contiguous_buffer(buffer):
    with pytest.raises((ValueError, RuntimeError), match="buffer"):
        fb.frombuffer(buffer, dtype=fb.float32)

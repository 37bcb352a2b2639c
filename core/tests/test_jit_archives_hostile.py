"""Archives of programs made by somebody else: their code computes, and reaches nothing beyond."""

import io
import os
import pickle
import sys
import time
import types
import zipfile

import pytest

import flambeau as fb
from flambeau.jit._archive import _Pickler
from flambeau.jit._frontend import builtins
from flambeau.serialization import CheckpointError, _pickler
from flambeau.serialization._archive import ArchiveWriter

HEAD = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"


@pytest.fixture
def make(monkeypatch):
    """Makes objects of classes of an archive, by name and what they hold."""
    space = types.ModuleType("__torch__")
    monkeypatch.setitem(sys.modules, "__torch__", space)

    def made(name, **state):
        if not hasattr(space, name):
            setattr(space, name, type(name, (), {"__module__": "__torch__"}))
        one = object.__new__(getattr(space, name))
        one.__dict__.update(state)
        return one

    return made


def archive(code, root):
    """The archive of a program."""
    out, data, table = io.BytesIO(), io.BytesIO(), _pickler.StorageTable()
    written = ArchiveWriter(out.write, "x")
    _Pickler(data, 2, table, False).dump(root)
    written.record("data.pkl", data.getvalue())
    written.record("code/__torch__.py", code.encode())
    for key, storage in table.found.items():
        written.record(f"data/{key}", _pickler.host_bytes(storage))
    written.record("constants.pkl", pickle.dumps((), 2))
    written.record("version", b"3\n")
    written.close()
    out.seek(0)
    return out


CHAIN = """
class E:
  TEMPLATES : Dict[str, str]
class D:
  modules : Dict[str, __torch__.E]
class C:
  _sys : __torch__.D
class B:
  _ctypes : __torch__.C
class A:
  ctypes : __torch__.B
class T:
  _a : __torch__.A
"""
REACH = """    d = t._a.ctypes._ctypes._sys.modules["flambeau.jit._frontend.builtins"].TEMPLATES
    d["aten::relu"] = "wrong"
    return torch.len(d)
"""


@pytest.mark.parametrize(
    ("held", "taken"),
    [
        ("List[__torch__.T]", "(self.held)[0]"),
        ("Dict[str, __torch__.T]", '(self.held)["a"]'),
        ("Tuple[__torch__.T]", "(self.held)[0]"),
        ("Any", "unchecked_cast(__torch__.T, self.held)"),
        ("Tensor", "unchecked_cast(__torch__.T, self.held)"),
        ("Optional[__torch__.T]", "unchecked_cast(__torch__.T, self.held)"),
    ],
)
@pytest.mark.parametrize("through", ["", "call", "attribute"])
def test_what_is_no_object_of_a_class_is_not_taken_for_one(make, held, taken, through):
    lines = f"    t = {taken}\n"
    if through == "call":
        lines = f"    t = __torch__.same({taken})\n"
    elif through == "attribute":
        lines = f"    self.t = {taken}\n    t = self.t\n"
    extra = "  t : __torch__.T\n" if through == "attribute" else ""
    code = f"{CHAIN}def same(t: __torch__.T) -> __torch__.T:\n  return t\n"
    code += f"{HEAD}  held : {held}\n{extra}"
    code += f"  def forward(self: __torch__.M) -> int:\n{lines}{REACH}"
    tensor = fb.ones(2)
    values = {"List": [tensor], "Dict": {"a": tensor}, "Tuple": (tensor,)}
    value = values.get(held.partition("[")[0], tensor)
    state = {"training": True, "held": value}
    before = builtins.TEMPLATES.get("aten::relu")
    if through == "attribute":
        state["t"] = make(
            "T", _a=make("A", ctypes=make("B", _ctypes=make("C", _sys=make("D", modules={}))))
        )
    module = fb.jit.load(archive(code, make("M", **state)))
    with pytest.raises(RuntimeError, match="expected an object of __torch__"):
        module()
    assert builtins.TEMPLATES.get("aten::relu") == before


@pytest.mark.parametrize("kind", ["T", "M"])
def test_attributes_of_a_class_hold_what_their_types_say(make, kind):
    code = f"{CHAIN}{HEAD}  held : __torch__.{kind}\n"
    code += "  def forward(self: __torch__.M) -> int:\n    return 1\n"
    with pytest.raises(CheckpointError, match="expected an object of __torch__"):
        fb.jit.load(archive(code, make("M", training=True, held=fb.ones(2))))


@pytest.mark.parametrize("kind", ["parameters", "buffers"])
def test_parameters_and_buffers_of_an_archive_are_tensors(make, kind):
    code = HEAD.replace(f"__{kind}__ = []", f'__{kind}__ = ["held"]') + "  held : int\n"
    code += "  def forward(self: __torch__.M) -> int:\n    return 1\n"
    with pytest.raises(CheckpointError, match="held.* should be a tensor"):
        fb.jit.load(archive(code, make("M", training=True, held=3)))


@pytest.mark.parametrize("name", ["__class__", "__dict__", "_modules", "_type_of_script", "code"])
def test_attributes_have_no_names_of_what_objects_of_python_are_made_of(make, name):
    code = f"{HEAD}  {name} : Dict[str, int]\n  def forward(self: __torch__.M) -> int:\n"
    code += f"    return torch.len(self.{name})\n"
    root = make("M", training=True)
    root.__dict__[name] = {"a": 1}
    with pytest.raises(CheckpointError, match="cannot have an attribute"):
        fb.jit.load(archive(code, root))


@pytest.mark.parametrize(
    "line",
    [
        'torch.save(x, "{path}")',
        'ops.aten.save(x, "{path}")',
        'x.save("{path}")',
        'return torch.from_file("{path}", True, 3)',
        "return __torch__.written(x)",
    ],
)
def test_code_of_archives_neither_writes_nor_reads_files(make, tmp_path, line):
    path = str(tmp_path / "file")
    code = f'def written(x: Tensor) -> Tensor:\n  torch.save(x, "{path}")\n  return x\n{HEAD}'
    code += "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n"
    code += f"    {line.format(path=path)}\n" + ("" if "return" in line else "    return x\n")
    with pytest.raises((CheckpointError, fb.jit.CompilationError)):
        fb.jit.load(archive(code, make("M", training=True)))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["_archive", "load", "save", "script", "os"])
def test_code_of_archives_has_of_the_library_what_the_language_has(make, name):
    code = f"{HEAD}  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n"
    code += f"    y = torch.jit.{name}\n    return x\n"
    with pytest.raises(fb.jit.CompilationError, match=name):
        fb.jit.load(archive(code, make("M", training=True)))


def test_texts_are_formatted_without_a_look_inside(make):
    for text in ("{0.__class__}", "{0[0]}", "{:{0.shape}}"):
        code = f"{HEAD}  def forward(self: __torch__.M, x: Tensor) -> str:\n"
        code += f'    return torch.format("{text}", x)\n'
        module = fb.jit.load(archive(code, make("M", training=True)))
        assert module(fb.ones(2)) == text  # only {} is a field


def test_what_is_held_many_times_is_made_once(make):
    shared = [1]
    for _ in range(60):
        shared = [shared, shared]
    loop = []
    loop.append(loop)
    code = f"{HEAD}  held : Any\n  loop : Any\n"
    code += "  def forward(self: __torch__.M) -> int:\n    return 1\n"
    start = time.process_time()
    module = fb.jit.load(archive(code, make("M", training=True, held=shared, loop=loop)))
    assert module() == 1 and time.process_time() - start < 5
    assert module.held[0] is module.held[1] and module.loop[0] is module.loop


@pytest.mark.parametrize("body", ["  pass", "  mro = 1", "  __class__ = 1", "  a = f()"])
def test_an_enumeration_without_proper_members_is_refused(make, body):
    code = f"class E(Enum):\n{body}\n{HEAD}  held : __torch__.E\n"
    code += "  def forward(self: __torch__.M) -> int:\n    return 1\n"
    with pytest.raises((CheckpointError, fb.jit.CompilationError)):
        fb.jit.load(archive(code, make("M", training=True, held=1)))


@pytest.mark.parametrize(
    "lines",
    [
        [f"{'  ' * i}for a{i} in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10):" for i in range(9)]
        + ["  " * 9 + "x = x + 1"],
        ["t0 = (x, x)", *(f"t{i} = (t{i - 1}, t{i - 1})" for i in range(1, 60)), "return t59"],
        ["t0 = (x, x)", *(f"t{i} = (t{i - 1}, t{i - 1})" for i in range(1, 40)), "y = [t39, t38]"],
        ["y = CONSTANTS.c0"],
        ["y = CONSTANTS.c" + "1" * 5000],
    ],
    ids=["unrolled", "type in an error", "types compared", "doubled constant", "digits"],
)
def test_code_that_would_grow_without_end_is_refused_at_once(lines):
    doubled = b"\x80\x02)q\x00" + b"h\x00\x86q\x00" * 60 + b"\x85."
    body = "".join(f"    {line}\n" for line in lines)
    file = rewritten("\n  def g(self, x: Tensor) -> Tensor:\n" + body + "    return x\n", doubled)
    with pytest.raises(RuntimeError, match="parts|turns|no constant") as caught:
        fb.jit.load(file)
    assert len(str(caught.value)) < 20_000


def test_constants_of_classes_that_share_a_hash_take_no_quadratic_time():
    keys = ", ".join(str(i * (2**61 - 1)) for i in range(1, 30_000))
    file = rewritten("\n  q : Final[int] = {" + keys + "}\n")
    start = time.process_time()
    fb.jit.load(file)
    assert time.process_time() - start < 10


def rewritten(more, constants=None):
    """An archive of a linear layer with more in the class of the layer."""
    written = io.BytesIO()
    fb.jit.save(fb.jit.script(fb.nn.Linear(2, 1)), written)
    made = io.BytesIO()
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if b"class Linear(" in data:  # the file has the name of the class when it was free
                data += more.encode()
            if constants is not None and name.endswith("constants.pkl"):
                data = constants
            new.writestr(name, data)
    return io.BytesIO(made.getvalue())

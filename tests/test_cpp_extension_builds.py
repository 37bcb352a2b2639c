"""What is compiled, when, and where: `load` and ``setup.py``, on sources that take a moment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("pybind11", reason="extensions are compiled with pybind11")
pytest.importorskip("setuptools", reason="a setup.py needs setuptools")
if shutil.which(os.environ.get("CXX", "c++").split()[0]) is None:
    pytest.skip("there is no compiler of C++", allow_module_level=True)

import flambeau as fb
from flambeau.utils import cpp_extension
from flambeau.utils.cpp_extension import _build, _compiler, _precompiled

SOURCE = """
#include <Python.h>
#include "answer.h"
#define PASTE(a, b) a##b
#define INIT(name) PASTE(PyInit_, name)
#define TEXT(name) #name
#define NAME(name) TEXT(name)
#ifdef _OPENMP
#include <omp.h>
#define THREAD omp_get_thread_num()
#else
#define THREAD 0
#endif
static PyObject* answer(PyObject*, PyObject*) {
  return PyLong_FromLong(ANSWER + EXTRA + THREAD);
}
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, NAME(TORCH_EXTENSION_NAME), "", 0, methods};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "built"))
    (tmp_path / "source.cpp").write_text(SOURCE)
    (tmp_path / "answer.h").write_text("#define ANSWER 40\n")
    return tmp_path


@pytest.fixture(params=["ninja", "threads"])
def runner(request, monkeypatch):
    """What runs the compilers."""
    if request.param == "threads":
        monkeypatch.setattr(_compiler, "is_ninja_available", lambda: False)
    elif not cpp_extension.is_ninja_available():
        pytest.skip("ninja is not installed")
    return request.param


class Commands:
    """What the compiler was asked for, whoever asked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __len__(self) -> int:
        return len(self[:])

    def __getitem__(self, part: slice) -> list[str]:
        return self.file.read_text().splitlines()[part] if self.file.exists() else []


def compiler(folder: Path, first: str) -> str:
    """A compiler that does something first, whenever it is to make something."""
    script = folder / "compiler"
    script.write_text(f'#!/bin/sh\ncase "$*" in *" -o "*)\n{first}\nesac\nexec c++ "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def commands(folder, monkeypatch):
    """The commands that are run."""
    monkeypatch.setenv("CXX", compiler(folder, f'echo "$*" >> {folder}/commands'))
    return Commands(folder / "commands")


def load(folder, extra=2, **options):
    return cpp_extension.load(
        "answering", [str(folder / "source.cpp")], extra_cflags=[f"-DEXTRA={extra}"], **options
    )


@pytest.mark.usefixtures("runner")
def test_what_has_not_changed_is_not_compiled_again(folder, commands):
    module = load(folder)
    assert module.answer() == 42
    assert len(commands) == 2
    assert load(folder) is module
    os.utime(folder / "source.cpp")
    assert load(folder) is module
    assert len(commands) == 2


@pytest.mark.usefixtures("runner")
def test_a_change_of_header_option_or_source_makes_a_new_module(folder, commands):
    first = load(folder)
    (folder / "answer.h").write_text("#define ANSWER 50\n")
    second = load(folder)
    assert (first.answer(), second.answer()) == (42, 52)
    assert load(folder, extra=3).answer() == 53
    for old in (folder / "built").rglob("answering-*.so"):
        os.utime(old, (0, 0))  # of an hour ago: no process is about to load it
    (folder / "source.cpp").write_text(SOURCE.replace("ANSWER + EXTRA", "ANSWER - EXTRA"))
    assert load(folder, extra=3).answer() == 47
    assert first.answer() == 42
    made = list((folder / "built").rglob("answering-*.so"))
    assert len(made) == 1
    assert made[0].parts[-3].startswith("flambeau-py3")


@pytest.mark.usefixtures("runner")
def test_processes_and_threads_that_want_one_extension_compile_it_once(folder, commands):
    modules = []
    threads = [threading.Thread(target=lambda: modules.append(load(folder))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(commands) == 2
    assert len(set(map(id, modules))) == 1
    program = f"""
        from flambeau.utils import cpp_extension
        module = cpp_extension.load(
            "answering", [{str(folder / "source.cpp")!r}], extra_cflags=["-DEXTRA=2"], verbose=True
        )
        print(module.answer())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "42\n"


@pytest.mark.usefixtures("runner")
def test_a_build_that_was_interrupted_is_done_again(folder, commands):
    load(folder)
    where = folder / "built"
    for path in where.rglob("*.so"):
        path.unlink()
    for path in where.rglob("*.json"):
        path.write_text("{")
    for path in where.rglob("*.o"):
        path.write_bytes(b"half an obj")
    assert load(folder).answer() == 42
    assert len(commands) == 4


@pytest.mark.usefixtures("runner")
def test_sources_that_compiled_are_not_compiled_again_when_another_did_not(
    folder, commands, monkeypatch
):
    monkeypatch.setenv("MAX_JOBS", "1")
    (folder / "other.cpp").write_text("int other( {")
    sources = [str(folder / "source.cpp"), str(folder / "other.cpp")]

    def load_both():
        return cpp_extension.load("answering", sources, extra_cflags=["-DEXTRA=2"])

    with pytest.raises(RuntimeError, match=r"other\.cpp:1"):
        load_both()
    (folder / "other.cpp").write_text("int other() { return 1; }")
    assert load_both().answer() == 42
    compiled = [line.partition(" -c ")[2].split()[0] for line in commands[:] if " -c " in line]
    assert [Path(each).stem for each in compiled] == ["source", "other", "other"]


def test_an_interrupt_ends_compilers_and_the_build_is_done_again(folder, runner, monkeypatch):
    program = f"""
        import sys
        from flambeau.utils import cpp_extension
        from flambeau.utils.cpp_extension import _compiler
        if {runner == "threads"}:
            _compiler.is_ninja_available = lambda: False
        cpp_extension.load("answering", {str(folder / "source.cpp")!r})
    """
    # As long as the file is there, a compiler writes half an object and then waits.
    slow = f"""
        if [ -e {folder}/slow ]; then
          for out; do case $out in *.o) echo half > $out;; esac; done
          echo $$ > {folder}/compiling
          exec sleep 300
        fi
    """
    (folder / "slow").touch()
    monkeypatch.setenv("CXX", compiler(folder, slow))
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stderr=subprocess.PIPE,
        start_new_session=True,
        # What a shell starts in the background ignores interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not (folder / "compiling").exists() or not (folder / "compiling").read_text():
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "compiling").read_text()), 0)
    (folder / "slow").unlink()
    assert load(folder).answer() == 42


@pytest.mark.parametrize("name", ["a b", "a$b:c", "a'b\"c", "a#b%&(c)"])
def test_folders_may_have_any_name(tmp_path, name, monkeypatch, runner):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / name / "built"))
    (tmp_path / name).mkdir()
    (tmp_path / name / "source.cpp").write_text(SOURCE)
    (tmp_path / name / "answer.h").write_text("#define ANSWER 40\n")
    assert load(tmp_path / name).answer() == 42
    (tmp_path / name / "answer.h").write_text("#define ANSWER 50\n")
    assert load(tmp_path / name).answer() == 52
    described = list((tmp_path / name).rglob("build.ninja"))
    assert len(described) == (runner == "ninja")


GCC = "Free Software Foundation" in _compiler.version_of(os.environ.get("CXX", "c++").split()[0])


@pytest.fixture
def small_header(folder, monkeypatch):
    """A header that takes no time in the place of ``torch/extension.h``."""
    header = folder / "headers" / "torch" / "extension.h"
    header.parent.mkdir(parents=True)
    header.write_text('#pragma once\n#include <Python.h>\n#include "answer.h"\n')
    (header.parent / "answer.h").write_text("#define ANSWER 40\n")
    monkeypatch.setattr(_compiler, "headers", lambda: folder / "headers")
    text = SOURCE.replace("#include <Python.h>", "// first\n#include <torch/extension.h>")
    (folder / "source.cpp").write_text(text.replace('#include "answer.h"', ""))
    return header


def edit(folder, text):
    source = folder / "source.cpp"
    source.write_text(f"{source.read_text()}\n{text}\n")


@pytest.mark.usefixtures("runner")
@pytest.mark.skipif(not GCC, reason="other compilers have other forms of compiled headers")
def test_the_header_is_compiled_by_itself_when_a_source_is_built_again(
    folder, small_header, commands, capfd
):
    def compiled(**options):
        before = len(commands)
        answer = load(folder, verbose=True, **options).answer()
        kinds = ["header" if "c++-header" in c else "other" for c in commands[before:]]
        return answer, kinds

    assert compiled() == (42, ["other", "other"])
    edit(folder, "int more;")
    assert compiled() == (42, ["header", "other", "other"])
    assert capfd.readouterr().out.count("c++-header") == 1
    edit(folder, "#if defined(__GNUC__)\nint still_more;\n#endif")
    assert compiled() == (42, ["other", "other"])
    (small_header.parent / "answer.h").write_text("#define ANSWER 50\n")
    assert compiled() == (52, ["header", "other", "other"])
    assert compiled() == (52, [])
    for extra in (3, 4, 5):  # one for each set of options, the last of which stay
        assert compiled(extra=extra) == (50 + extra, ["header", "other", "other"])
    assert len(list((folder / "built").rglob("*.gch"))) == 2


@pytest.mark.skipif(not GCC, reason="other compilers have other forms of compiled headers")
def test_a_compiled_header_is_read_by_extensions_of_other_names(
    folder, small_header, commands, capfd
):
    def make(name):
        module = cpp_extension.load_inline(
            name,
            (folder / "source.cpp").read_text(),
            extra_cflags=["-DEXTRA=2", "-H", "-Winvalid-pch", "-Werror"],
            use_pch=True,
            verbose=True,
        )
        return module.answer()

    assert make("first") == 42
    assert "c++-header" in capfd.readouterr().out
    assert make("second") == 42
    said = capfd.readouterr().out
    assert "c++-header" not in said
    assert "! " in said and "extension.h.gch" in said.partition("! ")[2]


def test_a_source_that_begins_otherwise_reads_the_header_itself(tmp_path):
    source, compiler = tmp_path / "source.cpp", _compiler.compiler()
    for text, first in (
        ("#include <torch/extension.h>", True),
        ('/* of\n ours */\n\n// here\n#pragma once\n# include "torch/extension.h"\n', True),
        ("#define NDEBUG\n#include <torch/extension.h>", False),
        ("#include <vector>\n#include <torch/extension.h>", False),
        ("#include <torch/torch.h>", False),
        ("", False),
    ):
        source.write_text(text)
        assert _precompiled.begins_with_header(source, compiler) is (first and GCC)


@pytest.mark.usefixtures("runner")
def test_errors_of_the_compiler_are_told(folder):
    (folder / "source.cpp").write_text("int wrong( {")
    with pytest.raises(RuntimeError, match="Error building extension 'answering'") as failed:
        load(folder)
    assert "source.cpp:1" in str(failed.value)
    assert "int wrong( {" in str(failed.value)
    with pytest.raises(FileNotFoundError, match="there is no source"):
        cpp_extension.load("answering", str(folder / "nosuch.cpp"))
    with pytest.raises(ValueError, match="the name of a module"):
        cpp_extension.load("no-name", str(folder / "source.cpp"))


@pytest.mark.usefixtures("runner")
def test_commands_are_printed_if_asked_for(folder, capfd):
    load(folder, verbose=True)
    assert "-DEXTRA=2" in capfd.readouterr().out


def test_objects_need_not_be_kept(folder):
    assert load(folder, keep_intermediates=False).answer() == 42
    assert not list((folder / "built").rglob("*.o"))


def test_a_library_that_is_no_module_is_loaded_into_the_process(folder):
    path = load(folder, is_python_module=False)
    assert path.endswith(".so")
    assert os.path.exists(path)


def test_inline_functions_are_bound_with_their_texts(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "flambeau.utils.cpp_extension._load._load", lambda what, *rest: seen.append(what)
    )
    cpp_extension.load_inline("a", ["int f();", "int g();"], functions={"f": 'says "f"', "g": "g"})
    text = seen[0].inline["main.cpp"]
    assert text.startswith("#include <torch/extension.h>\nint f();\nint g();\nPYBIND11_MODULE(")
    assert 'm.def("f", &f, R"flambeau(says "f")flambeau");' in text
    cpp_extension.load_inline("a", "", "__global__ void k();", functions=None)
    assert not seen[0].cuda
    assert seen[1].cuda
    assert "PYBIND11_MODULE" not in seen[1].inline["main.cpp"]


def test_a_standard_older_than_the_headers_is_dropped():
    options = ["-std=c++11", "-O3", "-std=gnu++14", "-std=c++20", "-std=c++17"]
    assert _compiler.modern(options) == ["-O3", "-std=c++20", "-std=c++17"]


def test_compilers_that_are_too_old_are_told(tmp_path):
    old = tmp_path / "old-compiler"
    old.write_text("#!/bin/sh\necho 'g++ (GCC) 4.8.5'\n")
    old.chmod(0o755)
    with pytest.warns(UserWarning, match=r"GCC 4\.8\.5 is older than 9"):
        assert not cpp_extension.check_compiler_abi_compatibility(str(old))
    assert cpp_extension.check_compiler_abi_compatibility(_compiler.compiler())


def test_a_compiler_or_ninja_that_is_not_there_is_named(folder, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no compiler 'no-such-compiler'"):
        load(folder)
    monkeypatch.setenv("PATH", "")
    assert not cpp_extension.is_ninja_available()
    with pytest.raises(RuntimeError, match="ninja cannot be run"):
        cpp_extension.verify_ninja_availability()


def test_headers_are_found(monkeypatch):
    own, pybind11 = cpp_extension.include_paths()
    assert os.path.exists(os.path.join(own, "torch", "extension.h"))
    assert os.path.exists(os.path.join(pybind11, "pybind11", "pybind11.h"))
    monkeypatch.setattr(_compiler, "CUDA_HOME", None)
    with pytest.raises(OSError, match="CUDA was not found"):
        cpp_extension.include_paths(cuda=True)
    monkeypatch.setattr(_compiler, "CUDA_HOME", "/opt/cuda")
    assert cpp_extension.include_paths(cuda=True)[-1] == "/opt/cuda/include"


def test_a_setup_py_builds_what_can_be_imported(folder, runner):
    setup = """
        from setuptools import setup
        from torch.utils.cpp_extension import BuildExtension, CppExtension
        given = dict(no_python_abi_suffix=True, use_ninja=USE_NINJA)
        options = {"cxx": ["-DEXTRA=2", "-std=c++11", "-fopenmp"]}
        setup(
            name="answering",
            ext_modules=[CppExtension("answering", ["source.cpp"], extra_compile_args=options)],
            cmdclass={"build_ext": BuildExtension.with_options(**given)},
        )
    """
    text = textwrap.dedent(setup).replace("USE_NINJA", str(runner == "ninja"))
    (folder / "setup.py").write_text(text)
    command = [sys.executable, "-m", "flambeau", "run", "setup.py", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert (folder / "answering.so").exists()
    done = subprocess.run(
        [sys.executable, "-c", "import answering; print(answering.answer())"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "42\n"


def test_a_setup_py_compiles_again_what_changed(folder, commands, runner):
    setup = f"""
        import sys
        from setuptools import setup
        from torch.utils.cpp_extension import BuildExtension, CppExtension
        options = ["-w", "-DEXTRA=" + sys.argv.pop()]
        module = CppExtension("answering", ["source.cpp", "other.cpp"], extra_compile_args=options)
        build = BuildExtension.with_options(use_ninja={runner == "ninja"})
        setup(name="answering", ext_modules=[module], cmdclass={{"build_ext": build}})
    """
    (folder / "setup.py").write_text(textwrap.dedent(setup))
    (folder / "other.cpp").write_text("int other() { return 1; }\n")

    def compiled(extra):
        before = len(commands)
        subprocess.run(
            [sys.executable, "-m", "flambeau", "run", "setup.py", "build_ext", "--inplace", extra],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", "import answering; print(answering.answer())"],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        lines = [line for line in commands[before:] if " -c " in line]
        sources = sorted(line.partition(" -c ")[2].split()[0] for line in lines)
        return int(done.stdout), sources

    assert compiled("2") == (42, ["other.cpp", "source.cpp"])
    os.utime(folder / "source.cpp")
    assert compiled("2") == (42, [])
    (folder / "answer.h").write_text("#define ANSWER 50\n")
    assert compiled("2") == (52, ["source.cpp"])
    assert compiled("3") == (53, ["other.cpp", "source.cpp"])


@pytest.mark.parametrize("fault", ["", "fault"])
def test_a_setup_py_compiles_several_sources_at_once(folder, fault, runner):
    setup = """
        from setuptools import setup
        from torch.utils.cpp_extension import BuildExtension, CppExtension
        sources = ["source.cpp", "other.cpp", "third.cpp"]
        given = dict(no_python_abi_suffix=True, use_ninja=USE_NINJA)
        options = ["-DEXTRA=2", "-w"]
        setup(
            name="answering",
            ext_modules=[CppExtension("answering", sources, extra_compile_args=options)],
            cmdclass={"build_ext": BuildExtension.with_options(**given)},
        )
    """
    text = textwrap.dedent(setup).replace("USE_NINJA", str(runner == "ninja"))
    (folder / "setup.py").write_text(text)
    (folder / "other.cpp").write_text("int other() { return 1; }\n")
    (folder / "third.cpp").write_text(f"int third() {{ return 2; }}\n{fault}\n")
    # It compiles nothing before it is there twice.
    waiting = """
        : > started-$$
        tries=0
        while [ $(ls started-* | wc -l) -lt 2 ]; do
          tries=$((tries + 1))
          [ $tries -lt 1200 ] || exit 1
          sleep 0.1
        done
    """
    done = subprocess.run(
        [sys.executable, "-m", "flambeau", "run", "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "CXX": compiler(folder, waiting), "MAX_JOBS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is (not fault), done.stderr
    assert (folder / "answering.so").exists() is (not fault)
    assert not fault or "third.cpp" in done.stderr


BOUND = """
#include <pybind11/pybind11.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("answer", [] { return ANSWER; }); }
"""


def test_a_module_that_pybind11_keeps_by_its_name_is_another_when_its_source_is(folder):
    (folder / "bound.cpp").write_text(BOUND)
    answers = []
    for answer in (123, 456, 456, 789):
        module = cpp_extension.load(
            "bound", [str(folder / "bound.cpp")], extra_cflags=["-O0", f"-DANSWER={answer}"]
        )
        assert module.__name__ == "bound"
        answers.append(module.answer())
    assert answers == [123, 456, 456, 789]


def test_options_and_folders_may_have_blanks_around_them_and_be_several_in_a_text(folder):
    (folder / "source.cpp").rename(folder / "away.cpp")
    (folder / "elsewhere").mkdir()
    (folder / "answer.h").rename(folder / "elsewhere" / "answer.h")
    module = cpp_extension.load(
        "answering",
        [str(folder / "away.cpp")],
        extra_cflags=["-g\n\n", " -O0 -DEXTRA='1 + 1' "],
        extra_include_paths=[f"   {folder / 'elsewhere'}\n"],
    )
    assert module.answer() == 42


@pytest.mark.parametrize("functions", [5, {"f"}])
def test_functions_that_are_neither_names_nor_docstrings_are_refused(functions):
    with pytest.raises(ValueError, match="Expected 'functions' to be a list or dict, but was <cl"):
        cpp_extension.load_inline("refused", "int f() { return 1; }", functions=functions)


def test_the_folder_of_all_builds_is_the_users_unless_the_environment_names_one(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cpp_extension.get_default_build_root() == str(tmp_path / "flambeau" / "extensions")
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    assert str(_build._root().parent) == cpp_extension.get_default_build_root()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/elsewhere")
    assert _build._root().parent == Path("/elsewhere")


@pytest.mark.slow
def test_the_headers_pass_where_an_optimising_compiler_takes_warnings_for_errors(folder):
    module = cpp_extension.load_inline(
        "careful",
        """
        at::Tensor made(at::Tensor x) {
          return at::zeros({x.size(0)}, x.options()) + at::ones({1}, at::kDouble).to(at::kFloat);
        }
        """,
        functions="made",
        extra_cflags=["-O3", "-Wall", "-Wextra", "-Werror"],
    )
    assert module.made(fb.zeros(2)).tolist() == [1, 1]


def test_extensions_of_cuda_name_its_headers_and_libraries(monkeypatch, tmp_path):
    (tmp_path / "lib64").mkdir()
    monkeypatch.setattr(_compiler, "CUDA_HOME", str(tmp_path))
    extension = cpp_extension.CUDAExtension("a", ["a.cpp", "a.cu"], libraries=["m"])
    assert extension.libraries == ["m", "cudart"]
    assert str(tmp_path / "lib64") in extension.library_dirs
    assert str(tmp_path / "include") in extension.include_dirs

"""An extension under AddressSanitizer: the headers touch no memory but that of tensors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pybind11", reason="extensions are compiled with pybind11")

SOURCE = """
#include <torch/extension.h>

at::Tensor swept(at::Tensor x, int64_t past) {
  TORCH_CHECK(x.dim() == 2, "a matrix, not ", x.dim(), " dimensions");
  auto rows = at::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swept", [&] {
    const auto from = x.accessor<scalar_t, 2>();
    const auto packed = x.packed_accessor32<scalar_t, 2>();
    auto* to = rows.data_ptr<scalar_t>();
    at::parallel_for(0, x.size(0) + past, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = 0;
        for (int64_t j = 0; i < x.size(0) && j < x.size(1); ++j) to[i] += from[i][j] + packed[i][j];
      }
    });
  });
  return rows;
}

std::vector<at::Tensor> views(at::Tensor x) {
  std::vector<double> own(6, 1.5);
  auto borrowed = at::from_blob(own.data(), {2, 3}, at::kDouble).clone();
  at::IntArrayRef sizes = {x.size(0), 1};
  x[0].fill_(7);
  auto kept = x.narrow(0, 0, 1).transpose(0, 1).contiguous();
  return {borrowed, kept, at::cat({x, x}, 1).slice(0, 0, 1), x.sum(1).view(sizes)};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("swept", &swept);
  m.def("views", &views);
}
"""

PROGRAM = """
import sys
import flambeau as fb
from flambeau.utils import cpp_extension

ext = cpp_extension.load(
    "sanitized",
    sys.argv[1],
    extra_cflags=["-O0", "-fsanitize=address"],
    build_directory=sys.argv[2],
)
x = fb.arange(15.0).reshape(5, 3)
for view in (x, x.t(), x[::2], x[:, 1:], x[:0]):
    assert fb.allclose(ext.swept(view, 0), 2 * view.sum(1))
borrowed, kept, part, total = ext.views(x.clone())
assert borrowed.tolist() == [[1.5] * 3] * 2
assert kept.tolist() == [[7.0]] * 3
assert part.shape == (1, 6) and total.shape == (5, 1)
try:
    ext.swept(x[0], 0)
except RuntimeError as error:
    assert "a matrix, not 1 dimensions" in str(error)
print("swept", flush=True)
ext.swept(x, 1)
"""


def sanitizer() -> str:
    """The libraries that come before all others; empty if the compiler has no AddressSanitizer.

    Errors of C++ are thrown by the second, which the first looks for when it starts.
    """
    command = os.environ.get("CXX", "c++").split()[0]
    if not sys.platform.startswith("linux") or shutil.which(command) is None:
        return ""
    found = []
    for name in ("libasan.so", "libstdc++.so"):
        asked = [command, f"-print-file-name={name}"]
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        found.append(told)
    return " ".join(found) if all(Path(each).is_absolute() for each in found) else ""


@pytest.mark.skipif(not sanitizer(), reason="the compiler has no AddressSanitizer")
def test_an_extension_touches_no_memory_but_that_of_tensors_and_would_be_told(tmp_path):
    source = tmp_path / "sanitized.cpp"
    source.write_text(SOURCE)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(source), str(tmp_path)],
        env={
            **os.environ,
            "LD_PRELOAD": sanitizer(),
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter keeps memory to its end
            "PYTHONMALLOC": "malloc",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    # The first error ends the process: there was none before the row more than there is.
    assert done.stdout == "swept\n", done.stderr
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr

"""What this machine's processor can do, as far as the operating system says."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

Value = bool | int | str

# Linux's names where PyTorch's are not the same: instruction sets by processor family.
_X86 = {
    "sse3": "pni",
    "fma3": "fma",
    "lzcnt": "abm",
    "sha": "sha_ni",
    "clflush": "clflush",
    "avx512_f": "avx512f",
    "avx512_cd": "avx512cd",
    "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw",
    "avx512_vl": "avx512vl",
    "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi",
}
_X86_SAME = (
    "sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx512_vbmi2 avx512_bitalg "
    "avx512_vpopcntdq avx512_vnni avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw "
    "avx512_4fmaps avx_vnni_int8 avx_ne_convert amx_bf16 amx_tile amx_int8 amx_fp16 fma4 f16c "
    "bmi1 bmi2 popcnt aes clflushopt clwb"
)
_ARM = {
    "neon": "asimd",
    "fp16_arith": "asimdhp",
    "bf16": "bf16",
    "i8mm": "i8mm",
    "dot": "asimddp",
    "sve": "sve",
    "sve2": "sve2",
    "sve_bf16": "svebf16",
    "sme": "sme",
    "sme2": "sme2",
    "atomics": "atomics",
    "fhm": "asimdfhm",
    "rdm": "asimdrdm",
    "crc32": "crc32",
    "aes": "aes",
    "sha1": "sha1",
    "sha2": "sha2",
    "pmull": "pmull",
}


@cache
def get_capabilities() -> Mapping[str, Value]:
    """What the processor can do: instruction sets by PyTorch's names, its name, cores and caches.

    Instruction sets are known on Linux. Elsewhere the mapping holds the architecture and the
    number of logical processors, so ask by ``get(name, False)``.

    >>> import flambeau as fb
    >>> fb.cpu.get_capabilities()["num_logical_cores"] >= 1
    True
    """
    architecture = platform.machine().lower()
    found: dict[str, Value] = {"architecture": _FAMILY.get(architecture, architecture)}
    found["num_logical_cores"] = os.cpu_count() or 1
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return MappingProxyType(found)
    found |= described(text, str(found["architecture"])) | caches(Path("/sys/devices/system/cpu"))
    return MappingProxyType(found)


_FAMILY = {"amd64": "x86_64", "aarch64": "arm64"}


def described(text: str, architecture: str) -> dict[str, Value]:
    """Flags, name and cores of a text such as ``/proc/cpuinfo``.

    >>> described("flags : sse2 fma", "x86_64")["fma3"]
    True
    """
    records = [_fields(record) for record in text.strip().split("\n\n")]
    first = records[0]
    found: dict[str, Value] = {}
    flags = set((first.get("flags") or first.get("Features") or "").split())
    if flags:
        found |= {ours: theirs in flags for ours, theirs in _names(architecture)}
    if name := first.get("model name"):
        found["cpu_name"] = name
    cores = {(r["physical id"], r["core id"]) for r in records if "core id" in r}
    if cores:
        found["num_physical_cores"] = len(cores)
        found["num_sockets"] = len({socket for socket, _ in cores})
    return found


def _fields(record: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in record.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _names(architecture: str) -> Iterable[tuple[str, str]]:
    if architecture == "x86_64":
        same = ((name.replace("bmi1", "bmi"), name) for name in _X86_SAME.split())
        return [*_X86.items(), *same]
    return _ARM.items() if architecture == "arm64" else ()


def caches(processors: Path) -> dict[str, Value]:
    """Bytes of the first processor's data cache and second cache.

    >>> caches(Path("/nowhere"))
    {}
    """
    found: dict[str, Value] = {}
    for place in processors.glob("cpu0/cache/index*"):
        try:
            level, kind, size = ((place / n).read_text().strip() for n in ("level", "type", "size"))
        except OSError:
            continue
        name = {("1", "Data"): "l1d_cache_size", ("2", "Unified"): "l2_cache_size"}.get(
            (level, kind)
        )
        if name and size.endswith("K"):
            found[name] = int(size[:-1]) << 10
    return found

"""What a plugin hands to the core: its kernels, and what the conformance kit may expect of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from flambeau._types.dtype import ALL

Kernel = Callable[..., Any]
"""Native arrays and plain values in, by canonical position; fresh native arrays out."""

Copier = Callable[[Any, int], Any]
"""``copy(array, index)``: `array` of one device type as a new one on device `index` of another."""

_DTYPE_NAMES = frozenset(d.name for d in ALL)


@dataclass(frozen=True)
class KernelSet:
    """Kernels of one provider, by canonical op name.

    Attributes:
        provider: who offers them, with version, such as ``"flambeau-numpy 0.1.0"``; shown to users.
        kernels: op name to callable.  ``name_`` writes into its first argument and returns nothing.

    Raises:
        TypeError: a kernel is not callable, or a name is not a string.
        ValueError: the provider has no name.

    >>> from flambeau.plugin import KernelSet
    >>> sorted(KernelSet("flambeau-toy 0.1", {"neg": lambda a: -a}).kernels)
    ['neg']
    """

    provider: str
    kernels: Mapping[str, Kernel]

    def __post_init__(self) -> None:
        if not isinstance(self.provider, str) or not self.provider.strip():
            raise ValueError(
                "KernelSet: provider must be a name such as 'flambeau-toy 0.1', "
                f"got {self.provider!r}"
            )
        for name, kernel in self.kernels.items():
            if not isinstance(name, str):
                raise TypeError(f"KernelSet of {self.provider}: op names are strings, got {name!r}")
            if not callable(kernel):
                raise TypeError(
                    f"KernelSet of {self.provider}: the kernel of {name!r} must be callable, "
                    f"got {kernel!r}"
                )
        # A frozen copy: a provider that keeps filling its dict would bypass validation.
        object.__setattr__(self, "kernels", MappingProxyType(dict(self.kernels)))


@dataclass(frozen=True)
class Expectations:
    """Where a backend is known to differ from the reference; read by the conformance kit.

    Attributes:
        tolerances: relative tolerance by op and dtype name, where the default is too strict.
        unsupported_dtypes: names of dtypes that the backend does not have.
        known_failures: test id to reason. The reason is mandatory, and a test that passes in spite
            of being listed is an error, so the list cannot rot.

    Raises:
        ValueError: an empty reason, an unknown dtype name, a tolerance that is not positive.

    >>> from flambeau.plugin import Expectations
    >>> Expectations(tolerances={("exp", "float16"): 2e-3}).tolerances["exp", "float16"]
    0.002
    """

    tolerances: Mapping[tuple[str, str], float] = field(default_factory=dict)
    unsupported_dtypes: Set[str] = frozenset()
    known_failures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.unsupported_dtypes, str):
            raise ValueError(
                "Expectations: unsupported_dtypes is a set of names, "
                f"got {self.unsupported_dtypes!r}"
            )
        named = {*self.unsupported_dtypes, *(name for _, name in self.tolerances)}
        if unknown := named - _DTYPE_NAMES:
            raise ValueError(
                f"Expectations: unknown dtypes {sorted(unknown)}; known: {sorted(_DTYPE_NAMES)}"
            )
        for (op, name), value in self.tolerances.items():
            if not value > 0:
                raise ValueError(
                    f"Expectations: tolerance of {op} for {name} must be > 0, got {value}"
                )
        for test, reason in self.known_failures.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"Expectations: the known failure {test!r} needs a reason")
        object.__setattr__(self, "tolerances", MappingProxyType(dict(self.tolerances)))
        object.__setattr__(self, "unsupported_dtypes", frozenset(self.unsupported_dtypes))
        object.__setattr__(self, "known_failures", MappingProxyType(dict(self.known_failures)))

    def merged(self, other: Expectations) -> Expectations:
        """These expectations with those of `other` added; on conflict, these win.

        >>> from flambeau.plugin import Expectations
        >>> both = Expectations(unsupported_dtypes={"float16"}).merged(
        ...     Expectations(unsupported_dtypes={"complex64"}))
        >>> sorted(both.unsupported_dtypes)
        ['complex64', 'float16']
        """
        return Expectations(
            {**other.tolerances, **self.tolerances},
            self.unsupported_dtypes | other.unsupported_dtypes,
            {**other.known_failures, **self.known_failures},
        )

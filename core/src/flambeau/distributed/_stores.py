"""Stores: keys and values that all processes of a job see.  `Store` says what each offers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._errors import DistStoreError
from flambeau.plugin import make_lock

Value = str | bytes

DEFAULT = timedelta(seconds=300)


def as_bytes(value: Value) -> bytes:
    """Keys and values as they travel.

    Raises:
        TypeError: it is neither text nor bytes.
    """
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"stores hold what UTF-8 can say: {error.reason}") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"stores hold str and bytes, not {type(value).__name__}")
    return bytes(value)


def as_keys(keys: Sequence[str]) -> list[str]:
    """A list of keys.

    Raises:
        TypeError: it is no list of str.
    """
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise TypeError(f"keys must be a list of str, not {type(keys).__name__}")
    return [as_key(key) for key in keys]


def as_key(key: str) -> str:
    """A key.

    Raises:
        TypeError: it is no str.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key must be str, not {type(key).__name__}")
    return key


def as_timeout(timeout: timedelta) -> timedelta:
    """How long to wait.

    Raises:
        TypeError: it is no timedelta.
    """
    if not isinstance(timeout, timedelta):
        raise TypeError(f"a timeout must be datetime.timedelta, not {type(timeout).__name__}")
    return timeout


class Store(ABC):
    """Keys and values that all processes of a job see; `get` and `wait` wait for keys to appear.

    >>> import flambeau as fb
    >>> store = fb.distributed.HashStore()
    >>> store.set("colour", "red")
    >>> store.get("colour"), store.add("count", 2), store.add("count", 1)
    (b'red', 2, 3)
    """

    def __init__(self, timeout: timedelta = DEFAULT) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose how long `get` and `wait` wait."""
        self._timeout = as_timeout(timeout)

    @abstractmethod
    def set(self, key: str, value: Value) -> None:
        """Keep `value` under `key`."""

    @abstractmethod
    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 at first, and return it."""

    @abstractmethod
    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""

    @abstractmethod
    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set `key` if it holds `expected_value` (empty: nothing); what it holds then."""

    @abstractmethod
    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""

    @abstractmethod
    def num_keys(self) -> int:
        """The number of keys."""

    @abstractmethod
    def _value(self, key: str) -> bytes:
        """The value of a key that is there."""

    def get(self, key: str) -> bytes:
        """The value of `key`, once there is one.

        Raises:
            DistStoreError: there is none within `timeout`.
        """
        self.wait([key])
        return self._value(key)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there.

        Raises:
            DistStoreError: they are not within `timeout`.
        """
        keys = as_keys(keys)
        limit = as_timeout(timeout or self._timeout).total_seconds()
        deadline, pause = time.monotonic() + limit, 0.0005
        while not self.check(keys):
            if time.monotonic() > deadline:
                raise late(keys, limit)
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)


def late(keys: Sequence[str], limit: float) -> DistStoreError:
    """The error of keys that did not come."""
    return DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {', '.join(keys)}")


class HashStore(Store):
    """A store of one process, for its threads and for a group of one."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._lock = make_lock()

    def set(self, key: str, value: Value) -> None:
        """Keep `value` under `key`."""
        with self._lock:
            self._values[as_key(key)] = as_bytes(value)

    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 at first, and return it."""
        with self._lock:
            total = int(self._values.get(as_key(key), b"0")) + amount
            self._values[key] = b"%d" % total
        return total

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._values for key in as_keys(keys))

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set `key` if it holds `expected_value` (empty: nothing); what it holds then."""
        expected = as_bytes(expected_value)
        with self._lock:
            held = self._values.get(as_key(key))
            if held == expected or (held is None and not expected):
                held = self._values[key] = as_bytes(desired_value)
        return expected if held is None else held

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""
        with self._lock:
            return self._values.pop(as_key(key), None) is not None

    def num_keys(self) -> int:
        """The number of keys."""
        return len(self._values)

    def _value(self, key: str) -> bytes:
        return self._values[key]


class PrefixStore(Store):
    """The keys of another store that begin with a prefix.

    >>> import flambeau as fb
    >>> whole = fb.distributed.HashStore()
    >>> fb.distributed.PrefixStore("a", whole).set("x", "1")
    >>> whole.get("a/x")
    b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            kind = type(store).__name__
            raise TypeError(f"PrefixStore(): argument 'store' must be Store, not {kind}")
        self.prefix = as_key(prefix)
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose how long `get` and `wait` wait."""
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{as_key(key)}"

    def set(self, key: str, value: Value) -> None:
        """Keep `value` under `key`."""
        self._store.set(self._key(key), value)

    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 at first, and return it."""
        return self._store.add(self._key(key), amount)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._store.check([self._key(key) for key in as_keys(keys)])

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set `key` if it holds `expected_value` (empty: nothing); what it holds then."""
        return self._store.compare_set(self._key(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        """The number of keys of the whole store."""
        return self._store.num_keys()

    def get(self, key: str) -> bytes:
        """The value of `key`, once there is one."""
        return self._store.get(self._key(key))

    def _value(self, key: str) -> bytes:
        return self._store._value(self._key(key))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self._store.wait([self._key(key) for key in as_keys(keys)], timeout)


all_take_as_annotated(globals())

"""How processes find each other: from the environment, an address, a file, or a store."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

from flambeau.distributed._file_store import FileStore, OwnFileStore
from flambeau.distributed._starters import started
from flambeau.distributed._stores import PrefixStore, Store
from flambeau.distributed._tcp_store import TCPStore

SERVED = "FLAMBEAU_STORE_SERVED"
"""In the environment: the address where a launcher has started the store already."""


PATIENCE = timedelta(minutes=30)
"""How long operations wait unless they are told otherwise."""

Meeting = tuple[Store, int, int]
"""A store, the rank of this process, and the number of processes."""

_handlers: dict[str, Callable[..., Iterator[Meeting]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Meeting]]) -> None:
    """Let `init_process_group` take URLs of a scheme of one's own.

    Args:
        scheme: of the URLs, ``"ours"`` for ``"ours://..."``.
        handler: a generator function that gets the URL, with rank and size in its query where they
            are known, and yields a store, the rank and the number of processes.

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _handlers or scheme in _OWN:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


_OWN = ("env", "tcp", "file")


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = PATIENCE
) -> Iterator[Meeting]:
    """Where processes meet: yields a store that all of them see, the rank, and their number.

    Args:
        url: as the `init_method` of `init_process_group`.
        rank: of this process, if neither the URL nor the environment says it.
        world_size: number of processes, likewise.
        timeout: of the store.

    Raises:
        ValueError: something is not given, or the URL has another form.
        RuntimeError: the URL has another scheme; or a second result is asked for.

    >>> import flambeau as fb, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"file://{folder}/meeting?rank=0&world_size=1"
    ...     store, rank, size = next(fb.distributed.rendezvous(url))
    ...     store.set("a", "b"); store.close()
    >>> rank, size
    (0, 1)
    """
    if not isinstance(url, str):
        raise TypeError(f"rendezvous(): url must be a string, not {type(url).__name__}")
    scheme = urlsplit(url).scheme
    if scheme not in (*_OWN, *_handlers):
        raise _no_handler(scheme)
    return _meetings(url, rank, world_size, timeout)


def _meetings(url: str, rank: int, size: int, timeout: timedelta) -> Iterator[Meeting]:
    yield meet(url, rank, size, timeout)
    raise RuntimeError(f"{url}: processes meet once; nothing leads them together again")


def meet(url: str, rank: int, size: int, timeout: timedelta, foreseen: bool = False) -> Meeting:
    """The store that a URL means, and rank and size, where the URL or the environment has them.

    A `foreseen` file is one whose name nobody chose, so that others can know it.

    Raises:
        ValueError: something is not given, or the URL has another form.
        RuntimeError: the URL has another scheme.
    """
    parts = urlsplit(url)
    if parts.scheme in _handlers:
        known = {"rank": rank, "world_size": size}
        query = "&".join(f"{key}={value}" for key, value in known.items() if value != -1)
        joined = "&".join(filter(None, (parts.query, query)))
        return next(_handlers[parts.scheme](parts._replace(query=joined).geturl(), timeout=timeout))
    given = {key: int(value) for key, value in parse_qsl(parts.query)}
    rank = given.get("rank", rank)
    size = given.get("world_size", size)
    if parts.scheme == "env":
        known = started()
        if known is not None and not os.environ.get("RANK"):
            rank, size = (rank if rank >= 0 else known.rank), (size if size > 0 else known.size)
            if known.url and not os.environ.get("MASTER_PORT"):
                address = os.environ.get("MASTER_ADDR")
                url = known.url
                if address and url.startswith("tcp"):
                    url = f"tcp://{address}:{urlsplit(url).port}"
                return meet(url, rank, size, timeout, True)
        rank = rank if rank >= 0 else int(_environment("RANK"))
        size = size if size > 0 else int(_environment("WORLD_SIZE"))
        host = os.environ.get("MASTER_ADDR") or ("" if rank else "127.0.0.1")
        host = host or _environment("MASTER_ADDR")
        port = int(_environment("MASTER_PORT"))
    elif parts.scheme == "tcp":
        host, port = parts.hostname or "", parts.port or 0
        if not host or not port:
            raise ValueError(
                "Error initializing torch.distributed using tcp:// rendezvous: "
                f"{'port number' if host else 'host'} missing in {url!r}"
            )
    elif parts.scheme == "file":
        _need("file", rank, size)
        path = parts.netloc + parts.path
        if not path:
            raise ValueError(
                "Error initializing torch.distributed using file:// rendezvous: path missing"
            )
        found = (OwnFileStore if foreseen else FileStore)(path, size)
        found.set_timeout(timeout)
        return found, rank, size
    else:
        raise _no_handler(parts.scheme)
    _need(parts.scheme, rank, size)
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not one of {size} processes")
    serving = os.environ.get(SERVED) != f"{host}:{port}"
    store = TCPStore(host, port, None, rank == 0 and serving, timeout, False)
    return store, rank, size


def _no_handler(scheme: str) -> RuntimeError:
    there = ", ".join(f"{known}://" for known in (*_OWN, *_handlers))
    return RuntimeError(f"No rendezvous handler for {scheme}://; there are {there}")


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return value


def _need(scheme: str, rank: int, size: int) -> None:
    for name, value in (("rank", rank), ("world size", size)):
        if value < 0:
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} "
                "parameter missing"
            )


def own_address(store: Store) -> str:
    """An address of this machine that the other processes of a job reach.

    ``GLOO_SOCKET_IFNAME`` names the network interface; else it is the one that reaches the store.
    """
    if interface := os.environ.get("GLOO_SOCKET_IFNAME"):
        return _address_of(interface)
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return store.own_address()
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


_SIOCGIFADDR = 0x8915


def _address_of(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("256s", interface.encode()[:15])
        try:
            answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
        except OSError as error:
            raise RuntimeError(
                f"GLOO_SOCKET_IFNAME: no network interface {interface!r}: {error}"
            ) from error
    return socket.inet_ntoa(answer[20:24])

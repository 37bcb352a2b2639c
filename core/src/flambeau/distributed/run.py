"""Start a script in several processes, as ``torchrun`` does.

``python -m flambeau.distributed.run`` is the command, and for scripts that say ``import torch``
``python -m flambeau run -m torch.distributed.run``.  The processes are those of
`flambeau.distributed.launch`, with the same variables; ``--local_rank``
is not among their arguments.  Machines find each other at ``--rdzv-endpoint``: with
``--rdzv-backend c10d`` the machine of that address is the first, and the others get their numbers
as they come.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta

import flambeau as fb
from flambeau.distributed import launch
from flambeau.distributed._tcp_store import TCPStore

__all__ = ["get_args_parser", "main", "run"]

_PORT = 29400
"""Of an endpoint that names none, as PyTorch has it."""
_LATEST = timedelta(minutes=10)
"""How long a machine waits for that of the endpoint."""
_WITHOUT_EFFECT = {
    "rdzv_conf": "",
    "monitor_interval": 0.1,
    "start_method": "spawn",
    "event_log_handler": "null",
    "redirects": "0",
    "tee": "0",
    "local_addr": None,
    "logs_specs": None,
    "numa_binding": None,
    "signals_to_handle": "",
    "shutdown_timeout": None,
}


def get_args_parser() -> argparse.ArgumentParser:
    """The arguments of the command: those of `launch`, and what ``torchrun`` has beside.

    >>> parser = get_args_parser()
    >>> options = parser.parse_args(["--nproc-per-node=auto", "--rdzv-id=7", "train.py", "--lr=1"])
    >>> options.nproc_per_node, options.rdzv_id, options.training_script_args
    ('auto', '7', ['--lr=1'])
    """
    made = launch.parser("python -m flambeau.distributed.run")
    made.set_defaults(use_env=True)
    for action in made._actions:
        if action.dest in ("nnodes", "nproc_per_node"):
            action.type = str
            action.default = "1"
    launch.add(made, "rdzv_backend", default="static", help="c10d numbers the machines itself")
    launch.add(made, "rdzv_endpoint", default="", help="ADDRESS:PORT of the first machine")
    launch.add(made, "rdzv_id", default="none", help="name of the job")
    launch.add(made, "role", default="default", help="ROLE_NAME of the processes")
    for name, value in _WITHOUT_EFFECT.items():
        launch.add(made, name, "-r" if name == "redirects" else "", "-t" if name == "tee" else "",
                   default=value, help="is taken, and changes nothing")  # fmt: skip
    return made


def _count(text: str) -> int:
    """The number of processes of one machine."""
    if text == "auto":
        text = "gpu" if fb.cuda.is_available() else "cpu"
    if text == "gpu":
        if not fb.cuda.is_available():
            raise ValueError("nproc_per_node: there is no CUDA device")
        return fb.cuda.device_count()
    if text == "cpu":
        return os.cpu_count() or 1
    if not text.isdecimal():
        raise ValueError(f"nproc_per_node is a number, auto, gpu or cpu, not {text!r}")
    return int(text)


def _machines(text: str) -> int:
    """The number of machines."""
    least, _, most = text.partition(":")
    if not least.isdecimal() or most not in ("", least):
        raise ValueError(f"nnodes is one number of machines, which stays the same, not {text!r}")
    return int(least)


def _is_here(host: str) -> bool:
    """Whether an address is one of this machine."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
        try:
            with socket.socket(family, kind, protocol) as found:
                found.bind(address)
        except OSError:
            continue
        return True
    return False


def _meet(options: argparse.Namespace) -> TCPStore:
    """The store of the endpoint, with the number of this machine set: 0 where the store is."""
    address = options.master_addr, options.master_port
    if _is_here(options.master_addr):
        try:
            store = TCPStore(*address, is_master=True)
        except fb.distributed.DistNetworkError:
            pass  # another launcher of this machine was first
        else:
            options.node_rank = 0
            return store
    store = TCPStore(*address, timeout=_LATEST)
    options.node_rank = store.add(f"{options.rdzv_id}/machines", 1)
    if options.node_rank >= options.nnodes:
        raise ValueError(f"{options.nnodes} machines are there already for {options.rdzv_id!r}")
    return store


def run(args: argparse.Namespace) -> int:
    """Start what the arguments say, and wait for it; the exit code.

    Raises:
        ValueError: an argument makes no sense here.
    """
    options = argparse.Namespace(**vars(args))
    options.nnodes = _machines(str(options.nnodes))
    options.nproc_per_node = _count(str(options.nproc_per_node))
    if options.rdzv_endpoint and not options.standalone:
        host, _, port = options.rdzv_endpoint.rpartition(":")
        if not host:
            host, port = port, str(_PORT)
        if not port.isdecimal():
            raise ValueError(f"rdzv_endpoint is ADDRESS:PORT, not {options.rdzv_endpoint!r}")
        options.master_addr, options.master_port = host.strip("[]"), int(port)
    numbered = options.nnodes > 1 and options.rdzv_backend != "static"
    return launch.run(options, _meet if numbered else None)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = get_args_parser()
    options = parser.parse_args(args)
    try:
        return run(options)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())

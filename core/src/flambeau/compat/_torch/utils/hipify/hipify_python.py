"""What a ``setup.py`` calls where PyTorch was built for AMD's GPUs; many import it in any case."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["hipify"]


def hipify(*args: object, **options: object) -> NoReturn:
    """Refuse: ``torch.version.hip`` is None, so no source needs to be rewritten.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("flambeau has no device for AMD's GPUs: sources are not rewritten")

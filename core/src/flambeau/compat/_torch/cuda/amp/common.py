"""What scalers of programs ask before they do anything."""

import flambeau as fb

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device to scale losses for."""
    return not fb.cuda.is_available()

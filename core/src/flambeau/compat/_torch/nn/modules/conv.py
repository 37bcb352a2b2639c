"""Names of ``torch.nn.modules.conv`` that only programs for PyTorch want."""

import warnings

from flambeau.nn.modules.conv import _ConvTransposeNd

__all__ = ["_ConvTransposeMixin"]


class _ConvTransposeMixin(_ConvTransposeNd):
    """An older base of transposed convolutions, which libraries look for to tell layers apart."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        warnings.warn(
            "_ConvTransposeMixin is the older name of a private class: _ConvTransposeNd",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)  # type: ignore[arg-type] - as they come

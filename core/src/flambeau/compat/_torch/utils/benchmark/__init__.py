"""Times of statements, as ``torch.utils.benchmark`` measures and tells them."""

from flambeau.compat._torch.utils.benchmark.compare import Compare
from flambeau.compat._torch.utils.benchmark.timing import Language, Measurement, Timer

__all__ = ["Compare", "Language", "Measurement", "Timer"]

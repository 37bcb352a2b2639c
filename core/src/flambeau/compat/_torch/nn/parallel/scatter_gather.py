"""Names of ``torch.nn.parallel.scatter_gather`` that only programs for PyTorch want."""

__all__ = ["_is_namedtuple", "is_namedtuple"]


def _is_namedtuple(obj: object) -> bool:
    """Whether an object is a tuple whose places have names."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


is_namedtuple = _is_namedtuple

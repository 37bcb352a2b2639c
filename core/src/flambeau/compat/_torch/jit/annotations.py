"""Types for annotations, under the path that older programs import."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

__all__ = ["Any", "Dict", "List", "NamedTuple", "Optional", "Tuple", "Union"]

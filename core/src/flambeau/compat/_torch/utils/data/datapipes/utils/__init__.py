"""What data pipes share."""

__all__: list[str] = []

"""Names of ``torch._library`` that programs ask for."""

__all__: list[str] = []

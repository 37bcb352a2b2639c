"""Names of ``torch._inductor`` that programs ask for when they are imported."""

__all__: list[str] = []

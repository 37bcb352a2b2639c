"""Data pipes, by the paths of ``torch.utils.data.datapipes``: streams and maps made of others."""

__all__: list[str] = []

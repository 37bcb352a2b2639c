"""Names of ``torch.utils.data._utils`` and below that only programs for PyTorch want."""

from flambeau.utils.data._utils.worker import CHECK_INTERVAL as MP_STATUS_CHECK_INTERVAL

__all__ = ["MP_STATUS_CHECK_INTERVAL"]

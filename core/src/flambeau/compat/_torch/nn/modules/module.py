"""Names of ``torch.nn.modules.module`` that only programs for PyTorch want."""

from flambeau.nn import _global_hooks
from flambeau.nn.module import Module

__all__ = ["_addindent", "_forward_unimplemented", "_has_any_global_hook"]


def _addindent(s_: str, numSpaces: int) -> str:
    """A text whose lines from the second on are indented, as modules show their children."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _forward_unimplemented(self: Module, *input: object) -> None:
    """What a module without a `forward` does when it is called.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


def _has_any_global_hook() -> bool:
    """Whether hooks are registered that see the calls of all modules."""
    return bool(_global_hooks.CALL_HOOKS)

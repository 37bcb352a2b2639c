"""Tables of vectors that training adapts."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional.embedding import checked_padding
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

Device = fb.device | str | int | None
_SETTINGS = ("max_norm", "norm_type", "scale_grad_by_freq")


class _Table(Module):
    """A matrix `weight`, drawn from the standard normal distribution or given."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Parameter

    def _make(
        self, given: Tensor | None, freeze: bool, device: Device, dtype: fb.dtype | None
    ) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            values = fb.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(values, requires_grad=not freeze)
            self.reset_parameters()
        else:
            require_tensors(self._get_name(), _weight=given)
            if tuple(given.shape) != shape:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim: "
                    f"{list(given.shape)} and {list(shape)}"
                )
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the table anew; the row of the padding is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with fb.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _text(self, *names: str) -> str:
        """The sizes, and the settings `names` that are not the usual ones."""
        usual = {"norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        settings = [
            f"{name}={value!r}"
            for name in names
            if (value := getattr(self, name)) != usual.get(name)
        ]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *settings])


class Embedding(_Table):
    """Vectors by number; `functional.embedding` explains the arguments.

    Shapes: input (*) of int32 or int64, result (*, embedding_dim).

    Raises:
        AssertionError: `padding_idx` is no row.

    >>> import flambeau as fb
    >>> layer = fb.nn.Embedding(10, 3, padding_idx=0)
    >>> layer(fb.tensor([[0, 4]])).shape
    torch.Size([1, 2, 3])
    >>> layer(fb.tensor([0])).detach()
    tensor([[0., 0., 0.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            padding_idx = checked_padding(padding_idx, num_embeddings)
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The vectors of these numbers."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        return self._text("padding_idx", *_SETTINGS, "sparse")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer with the table `embeddings`, which training changes only if not `freeze`.

        Raises:
            AssertionError: `embeddings` is no matrix.

        >>> import flambeau as fb
        >>> layer = fb.nn.Embedding.from_pretrained(fb.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(fb.tensor([1]))
        tensor([[3., 4.]])
        """
        rows, width = _matrix_shape(embeddings)
        return cls(
            *(rows, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse),
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of vectors; `functional.embedding_bag` explains the arguments.

    Shapes: input (B, L), or (N) with offsets (B); result (B, embedding_dim).

    >>> import flambeau as fb
    >>> table = fb.tensor([[1.0], [2.0], [4.0]])
    >>> bag = fb.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    >>> bag(fb.tensor([0, 1, 2]), fb.tensor([0, 2]))
    tensor([[3.],
            [4.]])
    """

    mode: str
    include_last_offset: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            padding_idx = checked_padding(padding_idx, num_embeddings)
        self.padding_idx = padding_idx
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make(_weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """One vector for each bag."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return self._text(*_SETTINGS, "mode", "padding_idx")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer with the table `embeddings`, which training changes only if not `freeze`.

        Raises:
            AssertionError: `embeddings` is no matrix.

        >>> import flambeau as fb
        >>> bag = fb.nn.EmbeddingBag.from_pretrained(fb.tensor([[1.0], [3.0]]))
        >>> bag(fb.tensor([[0, 1]]))
        tensor([[2.]])
        """
        rows, width = _matrix_shape(embeddings)
        bag = cls(
            *(rows, width, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings),
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag


def _matrix_shape(embeddings: Tensor) -> tuple[int, int]:
    require_tensors("from_pretrained", embeddings=embeddings)
    if embeddings.dim() != 2:
        raise AssertionError(
            f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()}"
        )
    return embeddings.shape[0], embeddings.shape[1]

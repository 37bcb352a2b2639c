"""The states of `Tensor._rg`, which says whether and how a tensor has a history.

=================  ===========================================  =================================
state              what it means                                who sets it
=================  ===========================================  =================================
``False``          no history and no gradient                   whoever makes a tensor
``True``           no view: `_fn` is the history, or, where     recorded ops and writes,
                   that is None, the tensor is a leaf           ``requires_grad_``
`VIEW`             a floating view: `_fn` is the history at     `views`, writes through views,
                   version `_seen`, which `edge` renews; it     ``autograd.Function``
                   requires a gradient if `_fn` is there or
                   the base requires one
`LEAF_VIEW`        as `VIEW`, and a leaf that requires a        ``requires_grad_`` of a view
                   gradient as long as `_fn` is None
`UNBUILT_VIEW`     as `VIEW`, requires a gradient; `_fn` is     `views`, of a base that requires
                   still the base's, and `edge` builds the      a gradient, while recording
                   history when it is asked for
=================  ===========================================  =================================

All but ``False`` are true: what is false has nowhere to send a gradient.  Only what is ``True`` or
``False`` is no view (or one that is not floating), which the fast paths ask with ``is``.  States
above `VIEW` require a gradient whatever the base does.
"""

VIEW = 2
LEAF_VIEW = 3
UNBUILT_VIEW = 4

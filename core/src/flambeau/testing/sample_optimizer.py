"""Samples of the optimisers' steps: two parameters with their gradients and state."""

from __future__ import annotations

from flambeau.testing.sample_arrays import Arr, Sample

Arrays = list[Arr]


def _pair(low: float = -2.0, seed: int = 0, high: float = 2.0) -> Arrays:
    """Two arrays of the same role, of the parameters' shapes."""
    return [Arr(shape, low=low, high=high, seed=seed + i) for i, shape in enumerate([(2, 3), ()])]


def _scalars(first: float, second: float) -> Arrays:
    return [Arr((), kind="literal", literal=(value,)) for value in (first, second)]


_PARAMS, _GRADS = _pair(), _pair(seed=10)
_MEAN, _SQUARE, _LARGEST = _pair(seed=20), _pair(0.0, 30), _pair(0.0, 40)
_STEPS = _scalars(9.0, 0.0)


def _samples(*state: Arrays, **choices: tuple[float, ...]) -> list[Sample]:
    """One sample per choice of the plain arguments."""
    return [
        Sample((_PARAMS, _GRADS, *state, _STEPS, *arguments), name.replace("_", " "))
        for name, arguments in choices.items()
    ]


def _rmsprop(name: str, centered: bool, momentum: float, weight_decay: float) -> Sample:
    # Squares above those of the means, so that there is a variance.
    means = _pair(-0.5, 20, 0.5) if centered else []
    state = (_pair(1.0, 30), means, _MEAN if momentum else [], _STEPS)
    rates = (0.25, 0.8, 1e-2) if centered and momentum else (0.1, 0.9, 1e-3)
    options = (*rates, weight_decay, momentum, centered, bool(weight_decay))
    return Sample((_PARAMS, _GRADS, *state, *options), name)


OPTIMIZER: dict[str, list[Sample]] = {
    "sgd_step_": [
        Sample((_PARAMS, _GRADS, [], 0.1, 0.0, 0.0, 0.0, False, False), "plain"),
        Sample((_PARAMS, _GRADS, _MEAN, 0.25, 0.9, 0.1, 0.01, False, False), "momentum, decay"),
        Sample((_PARAMS, _GRADS, _MEAN, 0.1, 0.9, 0.0, 0.0, True, True), "Nesterov, maximising"),
    ],
    "asgd_step_": [
        Sample(
            (_PARAMS, _GRADS, _MEAN, _scalars(0.5, 0.25), _scalars(0.5, 1.0), _STEPS, *options),
            name,
        )
        for name, options in (
            ("plain", (0.5, 0.125, 0.75, 1.0, 0.0, False)),
            ("decay, maximising", (0.25, 0.5, 0.5, 1e6, 0.1, True)),
        )
    ],
    "adam_step_": [
        *_samples(
            _MEAN,
            _SQUARE,
            [],
            plain=(0.1, 0.9, 0.999, 1e-8, 0.0, False, False, False),
            decoupled=(0.1, 0.9, 0.999, 1e-8, 0.01, True, False, False),
        ),
        *_samples(
            _MEAN, _SQUARE, _LARGEST, amsgrad=(0.25, 0.8, 0.99, 1e-3, 0.01, False, True, True)
        ),
    ],
    "rmsprop_step_": [
        _rmsprop("plain", False, 0.0, 0.0),
        _rmsprop("centred", True, 0.0, 0.1),
        _rmsprop("momentum", False, 0.9, 0.0),
        _rmsprop("centred with momentum", True, 0.75, 0.1),
    ],
    "adagrad_step_": _samples(
        _SQUARE,
        plain=(0.1, 0.0, 1e-3, 0.0, False),
        decay_maximising=(0.25, 0.5, 1e-2, 0.1, True),
    ),
    "adadelta_step_": _samples(
        _SQUARE,
        _LARGEST,
        plain=(0.1, 0.9, 1e-3, 0.0, False),
        decay_maximising=(0.25, 0.5, 1e-2, 0.1, True),
    ),
    "adamax_step_": _samples(
        _MEAN,
        _SQUARE,
        plain=(0.1, 0.9, 0.999, 1e-3, 0.0, False),
        decay_maximising=(0.25, 0.25, 0.5, 1e-2, 0.1, True),
    ),
    "nadam_step_": _samples(
        _MEAN,
        _SQUARE,
        _scalars(0.5, 1.0),
        plain=(0.1, 0.9, 0.999, 1e-3, 0.0, 4e-3, False, False),
        decoupled_maximising=(0.25, 0.25, 0.5, 1e-2, 0.1, 0.5, True, True),
        decay=(0.1, 0.9, 0.99, 1e-3, 0.1, 4e-3, False, False),
    ),
    "radam_step_": _samples(
        _MEAN,
        _SQUARE,
        # Only the average of the tenth step is long enough for a variance, of the others none.
        plain=(0.1, 0.9, 0.5, 1e-3, 0.0, False, False),
        decoupled_maximising=(0.25, 0.9, 0.96875, 1e-2, 0.1, True, True),
        decay=(0.1, 0.25, 0.96875, 1e-3, 0.1, False, False),
    ),
    "rprop_step_": _samples(
        _MEAN,
        _pair(0.125, 30),
        plain=(0.5, 1.25, 1e-3, 50.0, False),
        bounded_maximising=(0.25, 3.0, 0.5, 1.0, True),
    ),
}

"""Claims about training, tested with the training race: a small layer that learns to recall labels."""

from __future__ import annotations

from ...training.settings import Optimiser, Race
from ..claim import UNCLAIMED, Claim, ClaimFigure, at_most, trial_part, value
from ..sources import Source

_SEEDS = 8
_THREE = Race(64, ("none", "sqrt_d_k", "d_k"), rate=2.0, seeds=_SEEDS)
_ADAM, _DESCENT = "Adam at rate 0.03", "plain descent at rate 1"
_RATES: dict[str, tuple[Optimiser, float]] = {_ADAM: ("adam", 0.03), _DESCENT: ("sgd", 1.0)}
_LESS = at_most(-0.03, "less, by at least 0.03")


def _race(d_k: int, how: str) -> Race:
    optimiser, rate = _RATES[how]
    return Race(d_k, ("none", "sqrt_d_k"), rate, seeds=_SEEDS, optimiser=optimiser)


def _compared(d_k: int, how: str, part: str = "none recalled − sqrt_d_k") -> Source:
    return trial_part(part, "raced", _race(d_k, how))


TRAINING: tuple[Claim, ...] = (
    Claim(
        "train-equals-inference",
        "The scale must be the same in training and at inference.",
        "widely copied study notes",
        "It belongs to the model, unlike dropout: another one multiplies every learned logit, and the answers are "
        "another model's. How much that harms depends on what was learned. In the training race rows end nearly "
        "one-hot, and a larger multiplier changes only that; under a smaller one, weight leaks to other keys. It "
        "can be moved, though: W_Q and its bias multiplied by 1/√d_k need no scale, unless q is normalised after "
        "them. A ± of the race is over seeds; another arithmetic may change more.",
        figures=(
            ClaimFigure(
                "recalled without a scale minus with it, trained with 1/√d_k",
                _LESS,
                trial_part("sqrt_d_k under none − sqrt_d_k", "raced", _THREE),
                measure="use without a scale",
            ),
            ClaimFigure(
                "recalled under 1/d_k minus under 1/√d_k, trained with 1/√d_k",
                _LESS,
                trial_part("sqrt_d_k under d_k − sqrt_d_k", "raced", _THREE),
                measure="use under 1/d_k",
            ),
            ClaimFigure(
                "recalled with 1/√d_k minus without, trained without a scale",
                UNCLAIMED,
                trial_part("none under sqrt_d_k − none", "raced", _THREE),
            ),
            ClaimFigure(
                "recalled under 1/d_k minus without, trained without a scale",
                UNCLAIMED,
                trial_part("none under d_k − none", "raced", _THREE),
            ),
        ),
        title="training equals inference",
        race=_THREE,
    ),
    Claim(
        "unscaled-trains-worse",
        "Without the scale attention learns as well as with it at small d_k, and worse at large d_k.",
        "widely copied study notes; Vaswani et al. 2017, section 3.2.1",
        "Where steps are large it is so: wide unscaled rows start nearly one-hot on wrong keys, and some stay "
        "there. With smaller steps of plain descent they are moved in time, and both end alike. So it depends on "
        "the optimiser and on the learning rate, which the Train tab varies. The paper itself compares with "
        "additive attention, and cites Britz et al. 2017 for it. A ± is over seeds; another "
        "arithmetic may change more.",
        figures=(
            ClaimFigure(
                f"recalled unscaled minus scaled, d_k 256, {_ADAM}", _LESS, _compared(256, _ADAM), measure=_ADAM
            ),
            ClaimFigure(
                f"recalled unscaled minus scaled, d_k 8, {_ADAM}",
                value(0, within=0.03),
                _compared(8, _ADAM),
                measure=_ADAM,
            ),
            ClaimFigure(
                f"recalled unscaled minus scaled, d_k 256, {_DESCENT}",
                _LESS,
                _compared(256, _DESCENT),
                measure=_DESCENT,
            ),
            *(
                ClaimFigure(
                    f"recalled scaled, d_k {d_k}, {_ADAM}", UNCLAIMED, _compared(d_k, _ADAM, "sqrt_d_k recalled")
                )
                for d_k in (8, 256)
            ),
        ),
        title="unscaled trains worse",
        race=_race(256, _ADAM),
    ),
)

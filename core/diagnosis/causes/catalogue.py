"""CAUSES: what may have been done to a head other than what its file says, the most common first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from ..results import ORDER, StageName
from ..subject import Kind
from . import edits
from .edits import HypothesisCase, windows
from .hypothesis import Hypothesis, both
from .transforms import by_part, by_position, normalisations, rotations, uneven_blocks, uneven_rows

Edits: TypeAlias = "Callable[[HypothesisCase], Iterator[Hypothesis]]"
_ALL: tuple[Kind, ...] = ("weights", "lse", "o")


@dataclass(frozen=True)
class Cause:
    """One cause: the stage of attention at which it acts, and the edits of what the file says that it means.

    Without edits, it is a name for a multiplier (multipliers.py), for numbers that are not finite, or for factors.
    """

    id: str
    stage: StageName
    edits: Edits | None = None
    round: int = 0  # in which it is tried; later ones only if nothing before explains the evidence
    also: tuple[str, ...] = ()  # causes with the same effect
    needs: tuple[Kind, ...] = _ALL  # evidence that can tell
    ambiguous: bool = False  # whether it is near many numbers, so that it is never certain


_QK_NORM = ("qk-norm-extra", "qk-norm-missing")
_CAUSES = (
    Cause("scale-missing", "multiplier"),
    Cause("scale-twice", "multiplier"),
    Cause("scale-1-over-d", "multiplier"),
    Cause("scale-inverted", "multiplier"),
    Cause("prescale-extra", "multiplier"),
    Cause("scale-d-model", "multiplier"),
    Cause("scale-n-heads", "multiplier"),
    Cause("scale-n-keys", "multiplier", ambiguous=True),
    Cause("scale-quarter", "multiplier"),
    Cause("scale-base2", "multiplier"),
    Cause("scale-base2", "lse", edits.log_base, needs=("lse",)),
    Cause("scale-layer", "multiplier"),
    Cause("scale-padded", "multiplier", ambiguous=True),
    Cause("scale-fixed", "multiplier", ambiguous=True),
    Cause("scale-yarn", "multiplier", ambiguous=True),
    Cause("scale-yarn-twice", "multiplier", ambiguous=True),
    Cause("scale-other", "multiplier"),
    Cause("softcap-missing", "softcap", edits.no_softcap),
    Cause("sink-missing", "sink", edits.no_sink),
    Cause("bias-missing", "bias", edits.no_bias),
    Cause("scale-by-position", "multiplier", edits.same_in_rows),
    Cause("causal-lost", "mask", partial(edits.masks, "causal-lost")),
    Cause("future-key", "mask", partial(edits.masks, "future-key")),
    Cause("causal-shifted", "mask", partial(edits.masks, "causal-shifted")),
    Cause("causal-extra", "mask", partial(edits.masks, "causal-extra")),
    Cause("own-key-hidden", "mask", partial(edits.masks, "own-key-hidden")),
    Cause("padding-attended", "mask", partial(edits.masks, "padding-attended")),
    Cause("window-ignored", "mask", partial(edits.masks, "window-ignored")),
    Cause("mask-added", "mask", edits.mask_as_number),
    Cause("gqa-tiled", "qk", edits.tiled),
    Cause("qk-swapped", "qk", edits.swapped),
    Cause("softmax-axis", "weights", edits.along_queries),
    Cause("dropout-on", "weights", edits.dropped, needs=("weights",)),
    Cause("qk-norm-extra", "qk", normalisations, also=_QK_NORM),
    Cause("softcap-extra", "softcap", partial(edits.softcap, False)),
    Cause("softcap-other", "softcap", partial(edits.softcap, True)),
    Cause("sink-extra", "sink", edits.sink),
    Cause("bias-scaled", "bias", edits.scaled_bias, round=1),
    Cause("bias-extra", "bias", edits.bias_of_distance, round=1),
    Cause("scale-by-position", "multiplier", by_position, round=1),
    Cause("scale-by-part", "multiplier", by_part, round=1),
    Cause("window-extra", "mask", partial(windows, False), round=1, also=("window-ignored",)),
    Cause("window-ignored", "mask", partial(windows, True), round=1),
    Cause("rope-missing", "qk", partial(rotations, -1), round=2),
    Cause("rope-twice", "qk", partial(rotations, 1), round=2, also=("rope-missing",)),
    Cause("bias-extra", "bias", edits.free_biases, round=3),
    Cause("scale-by-block", "multiplier", uneven_blocks, round=3),
    Cause("scale-by-position", "multiplier", uneven_rows, round=3),
    Cause("qk-norm-weight", "qk"),
    Cause("qk-norm-missing", "qk", also=_QK_NORM),
    Cause("outputs-scaled", "o"),
    Cause("coarse-scores", "qk"),
    Cause("not-finite", "qk"),
)
CAUSES: dict[str, Cause] = {cause.id: cause for cause in reversed(_CAUSES)}
RANK = {id: number for number, id in enumerate(dict.fromkeys(cause.id for cause in _CAUSES))}
ROUNDS = 4


def hypotheses(case: HypothesisCase, number: int) -> list[Hypothesis]:
    """Return the hypotheses of a round that apply to this head and evidence, the most common first."""
    hypotheses: list[Hypothesis] = []
    for cause in _CAUSES:
        if cause.edits is not None and cause.round == number and case.evidence.kind in cause.needs:
            hypotheses += [
                replace(hypothesis, cause=cause.id, stage=cause.stage, also=hypothesis.also or cause.also)
                for hypothesis in cause.edits(case)
                if case.evidence.kind in hypothesis.kinds
            ]
    return hypotheses


def together(one: Hypothesis, other: Hypothesis) -> Hypothesis | None:
    """Return the hypothesis that both were done, in the order of computing; None if one undoes the other."""
    first, second = sorted((one, other), key=lambda cause: ORDER.index(cause.stage))
    stages = first.stage, second.stage
    undone = (one.cause == "scale-by-part" or other.cause == "scale-by-part") and "qk" in stages
    undone |= "softmax-axis" in (one.cause, other.cause) and "sink" in stages
    if (stages[0] == stages[1] and stages[0] != "bias") or undone or len(first.inner) > 1 < len(second.inner):
        return None
    return both(first, second)

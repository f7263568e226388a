"""What needs neither random attention nor a capture: what a layer costs, claims, the tour, runs of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, SupportsFloat, SupportsIndex
from warnings import warn

from ..attention.cost import SHAPE_FIELDS, Cost, LayerShape
from ..attention.presets import PRESETS
from ..errors import InputError
from ..learning.card import Card
from ..learning.items import ITEMS
from ..learning.outcome import Outcome
from ..questions.cost import CountCost
from ..questions.learn import ReadItems, all_claims
from ..questions.watch import WatchRun
from ..scales import SCALE_RULES
from ..statistics.catalogue import STATISTIC
from ..watching.limits import LIMIT
from ..watching.snapshot import RunSnapshot, run_path
from ..work.engines import all_results
from .result import Answer, Catalogue, FilePath, known_name, own_number

RULES = Catalogue(SCALE_RULES)
STATISTICS = Catalogue(STATISTIC)


def cost(preset: str | None = None, **shape: Any) -> Answer[Cost]:
    """Count parameters, bytes of the KV cache and FLOPs of a layer, as `attn-tui cost` does.

    `preset` names a well-known model; `shape` are the options of the command, such as d_model=4096, heads=32. Raise
    InputError if one is not accepted.
    """
    of = None if preset is None else PRESETS[known_name(preset, PRESETS)]
    known = [field.name for field in SHAPE_FIELDS]
    values = {known_name(name, known): own_number(value) for name, value in shape.items()}
    question = CountCost(replace(LayerShape() if of is None else of.layer, **values), of)
    answer = question.answer()
    return Answer(answer, question, answer)


def claims(*ids: str) -> Answer[Sequence[Outcome]]:
    """Test claims of study notes, by default all, as `attn-tui claims` does; this takes some seconds."""
    known = all_claims().items
    named = [known_name(name, known) for name in ids] or known
    question = ReadItems(tuple(claim for claim in known if claim in named))
    answer = question.answer()
    return Answer([claim.outcome for claim in answer], question, answer)


def learn(item: str | SupportsIndex) -> Answer[Card]:
    """Return a step of the tour, a question, such as "q1", or a bug, such as "b1", with figures of now."""
    word, words = str(own_number(item)), {item.word: item for item in ITEMS if item.kind != "claim"}
    if word not in words and word.isdigit():
        steps = [int(word) for word in words if word.isdigit()]
        raise InputError(
            "{word}: must be a step from {first} to {last}, or a question or a bug, such as q1 and b1",
            word=word,
            first=min(steps),
            last=max(steps),
        )
    question = ReadItems((words[known_name(word, words)].id,))
    answer = question.answer()
    return Answer(answer[0].card, question, answer)


def watch(
    run: FilePath,
    *,
    step: SupportsIndex | None = None,
    baseline: SupportsIndex | None = None,
    max_logit: SupportsFloat = LIMIT,
) -> Answer[RunSnapshot]:
    """Read the newest step of a training run, or another one, as `attn-tui watch --once` does.

    What cannot be read of it is a warning. Raise InputError if nothing can be.
    """
    number, beside = own_number(step), own_number(baseline)
    question = WatchRun(run=run_path(run), limit=own_number(max_logit), at=number, baseline=beside)
    results = all_results(question.parts())
    for note in results[:-1]:
        warn(str(note), RuntimeWarning, stacklevel=2)
    shown = question.result(results)
    return Answer(shown, question, shown)

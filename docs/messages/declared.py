"""Messages of the declarations in core: parameters, statistics, scale rules, models, weightings.

Names, symbols and formulas are the same in every language, and so are sources without a word but names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.attention.worked_example import EXAMPLE_FIELDS
from attn_tui.core.diagnosis.comparing.results import FIGURES, STAGES
from attn_tui.core.diagnosis.verdict import Word
from attn_tui.core.field import Field
from attn_tui.core.lab.weighting.results import MEASURES, WEIGHTINGS
from attn_tui.core.model_widths import MODEL_WIDTHS
from attn_tui.core.models import MODELS
from attn_tui.core.parameters import FIELDS, choice_word
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import MEANINGS
from attn_tui.core.training.settings import RACE_FIELDS
from attn_tui.core.training.snapshot import QUANTITIES
from message import Message, has_prose, messages

_SPOKEN = (" key", " of ", "query", "round")  # in formulas that have words
_SAME = ("model", "scale", "precision", "cache_format", "optimiser")  # choices that are names


def from_declarations() -> Iterator[Message]:
    """Yield the texts of all declarations in core."""
    for table in (fields, statistics, statuses, rules, models, weightings, comparisons, races):
        yield from table()


def fields() -> Iterator[Message]:
    """Yield what FIELDS, SHAPE_FIELDS, EXAMPLE_FIELDS and RACE_FIELDS say about each parameter."""
    yield from messages("core/parameters.py", _of_fields("FIELDS", FIELDS))
    yield from messages("core/attention/cost.py", _of_fields("SHAPE_FIELDS", SHAPE_FIELDS))
    yield from messages("core/attention/worked_example.py", _of_fields("EXAMPLE_FIELDS", EXAMPLE_FIELDS))
    yield from messages("core/training/settings.py", _of_fields("RACE_FIELDS", RACE_FIELDS))


def _of_fields(table: str, found: Iterable[Field]) -> Iterator[tuple[str, str]]:
    for field in found:
        yield f"{table} {field.name}: label", field.label
        yield f"{table} {field.name}: help", field.help
        for value in field.choices if field.name not in _SAME else ():
            yield f"{table} {field.name}: choice {value}", choice_word(value)


def statistics() -> Iterator[Message]:
    """Yield what STATISTICS says about each statistic."""
    for each in STATISTICS:
        name = f"STATISTICS {each.name}"
        texts = [(f"{name}: label", each.label), (f"{name}: short label", each.short)]
        texts += [("STATISTICS: group", each.group), (f"{name}: definition", each.definition)]
        texts += [(f"{name}: formula", each.formula if any(w in each.formula for w in _SPOKEN) else "")]
        texts += [(f"{name}: source", each.source if has_prose(each.source) else "")]
        yield from messages("core/statistics/catalogue.py", texts)


def statuses() -> Iterator[Message]:
    """Yield the words for a status, and what each means."""
    words = [("MEANINGS: status", word) for word in MEANINGS]
    meanings = [(f"MEANINGS {word}: a clause after a colon", text) for word, text in MEANINGS.items()]
    yield from messages("core/statistics/status.py", words + meanings)


def rules() -> Iterator[Message]:
    """Yield what SCALE_RULES says about each rule: its formula if that has words, its users, its note."""
    for rule in SCALE_RULES.values():
        name = f"SCALE_RULES {rule.name}"
        texts = [
            (f"{name}: formula", rule.formula if _in_words(rule.formula) else ""),
            (f"{name}: short label", rule.short if _in_words(rule.short) else ""),
            (f"{name}: after “Used by”", rule.used_by),
            (f"{name}: note, to which a full stop is added", rule.note),
            (f"{name}: source", rule.source if has_prose(rule.source) else ""),
        ]
        yield from messages("core/scales.py", texts)


def _in_words(formula: str) -> bool:
    return any(word in formula for word in ("rms", "Norm", "layer", "custom", "×", " on ", "each"))


def models() -> Iterator[Message]:
    """Yield what is to be known about each model of MODELS."""
    for name, model in MODELS.items():
        texts = [(f"MODELS {name}: note, to which a full stop is added", model.note)]
        texts += [(f"MODELS {name}: source", model.source if has_prose(model.source) else "")]
        yield from messages("core/models.py", texts)
    widths = [text for text in MODEL_WIDTHS.values() if text.startswith("the ") or has_prose(text)]
    yield from messages("core/model_widths.py", (("MODEL_WIDTHS: with words", text) for text in widths))


def weightings() -> Iterator[Message]:
    """Yield the labels of WEIGHTINGS, and the definitions of what is measured of them."""
    labels = [(f"WEIGHTINGS {each.name}: label", each.label) for each in WEIGHTINGS.values()]
    settings = [(f"WEIGHTINGS {each.name}: constant", each.setting) for each in WEIGHTINGS.values()]
    sources = [(f"WEIGHTINGS {each.name}: source", each.source) for each in WEIGHTINGS.values()]
    measures = [(f"MEASURES {name}: definition", text) for name, text in MEASURES.items()]
    yield from messages("core/lab/weighting/results.py", labels + settings + sources + measures)


def comparisons() -> Iterator[Message]:
    """Yield the stages of attention, and the figures of heads, that a comparison of captures names."""
    stages = [(f"STAGES {name}", text) for name, text in STAGES.items()]
    figures = [(f"FIGURES {name}: label", text) for name, text in FIGURES.items()]
    yield from messages("core/diagnosis/comparing/results.py", stages + figures)
    yield from messages("core/diagnosis/verdict.py", (("Word: a verdict", word) for word in get_args(Word)))


def races() -> Iterator[Message]:
    """Yield what QUANTITIES says about the curves of a training race."""
    labels = [(f"QUANTITIES {each.name}: label", each.label) for each in QUANTITIES]
    helps = [(f"QUANTITIES {each.name}: help", each.help) for each in QUANTITIES]
    yield from messages("core/training/snapshot.py", labels + helps)

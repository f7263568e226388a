"""What a statistic means, in the few words that fit beside its numbers."""

from __future__ import annotations

import re
from functools import lru_cache

from ....core.statistics.catalogue import Statistic
from ..glyphs import Glyphs


def meaning(statistic: Statistic, room: int, glyphs: Glyphs) -> str:
    """Return the beginning of the definition, if one that is complete fits in `room` cells; otherwise the formula."""
    forms = (*_beginnings(statistic.definition), statistic.formula)
    return next((text for text in map(glyphs.say, forms) if len(text) <= room), "")


@lru_cache
def _beginnings(definition: str) -> tuple[str, ...]:
    """Return the first sentence, its part up to a colon or a semicolon, and that up to each comma, longest first."""
    sentence = definition.partition(". ")[0].removesuffix(".")
    head = re.split("[:;] ", sentence)[0]
    parts = head.split(", ")
    return sentence, *(", ".join(parts[:count]) for count in range(len(parts), 0, -1))

"""What a statistic means, in the few words that fit beside its numbers."""

from __future__ import annotations

import re
from functools import lru_cache

from ....core.statistics.catalogue import Statistic
from ...language.cells import cells
from ..glyphs import Glyphs


def meaning(statistic: Statistic, room: int, glyphs: Glyphs) -> str:
    """Return the beginning of the definition, if one that is complete fits in `room` cells; otherwise the formula."""
    forms = (*_beginnings(glyphs.say(statistic.definition)), glyphs.say(statistic.formula))
    return next((text for text in forms if cells(text) <= room), "")


@lru_cache
def _beginnings(definition: str) -> tuple[str, ...]:
    """Return the first sentence, its part up to a colon or a semicolon, and that up to each comma, longest first."""
    sentence = re.split(r"\. |。", definition)[0].removesuffix(".")
    head = re.split("[:;] |[：；]", sentence)[0]
    commas = [comma.start() for comma in re.finditer(", |，", head)]
    return sentence, head, *(head[:at] for at in reversed(commas))

"""The meanings of the status words, for the help of panes."""

from __future__ import annotations

from collections.abc import Mapping

from ....core.message import joined, message
from ....core.statistics.status import MEANINGS


def status_help(marks: Mapping[str, str]) -> str:
    """Return a paragraph with every status, its mark if it has one, and its meaning."""
    told = [message("{word} ({mark})", word=word, mark=marks[word]) if word in marks else word for word in MEANINGS]
    parts = [joined([word, meaning], ": ") for word, meaning in zip(told, MEANINGS.values(), strict=True)]
    return message("The status is the first of these words that applies. {statuses}.", statuses=joined(parts, ". "))

"""What an interview question consists of. This module does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .figures import Figure
from .step import Shown


@dataclass(frozen=True)
class Question:
    """A question, the answer in 30 seconds, the long one, and the pane that shows the evidence.

    Texts hold placeholders as those of `Step`; `given` and `figures` may be used in all of them but the question.
    """

    id: str
    question: str
    short: str
    long: tuple[str, ...]
    figures: Mapping[str, Figure]
    shown: Shown
    usual: str = ""  # the usual answer, if it is wrong or half right
    verdict: str = ""  # what is wrong with it
    given: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])

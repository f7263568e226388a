"""How commands read captures: their notes, the scale that a project expects, and results head by head."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import InputError
from ...core.message import message
from ...core.questions.captures.captured import CaptureQuestion
from ...core.questions.parse import UsageError
from .output import Output, say
from .parser import Given
from .project import project_place, project_settings
from .working import Work, results_of

if TYPE_CHECKING:
    from ...core.work.part import Part

Q = TypeVar("Q", bound=CaptureQuestion[Any])


def expected_rule(given: Given) -> str | None:
    """Return the expected rule or formula, from the option or the project; raise UsageError if it is none."""
    from ...core.diagnosis.configuration import expecting

    where, expect = "--expect", given.get("expect")
    if expect is None:
        where, expect = project_place("expect"), project_settings().get("expect")
    try:
        expecting(expect)
    except InputError as error:
        raise UsageError("{where}: {reason}", where=where, reason=error) from error
    return expect


def opened(question: Q, work: Work, output: Output) -> Q:
    """Return the question with its captures open, after their notes are said; raise InputError if it cannot be."""
    question = replace(question, by_content=work.by_content)
    output.check(question.files)
    for note in question.notes:
        say(message("note: {note}", note=note), output.messages)
    return question


def head_results(
    question: CaptureQuestion[Any], work: Work, what: str, output: Output, parts: Iterable[Part[Any]] | None = None
) -> Generator[Any | InputError, None, None]:
    """Yield the results of the parts of a question, by default all, in order, as `results_of` does."""
    from ...core.work.heads import check_files

    sources = [*question.sources.values()]
    return results_of(question.parts() if parts is None else parts, work, what, output, partial(check_files, sources))

"""What results say of the files that they are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...message import message

if TYPE_CHECKING:
    from ...captures.capture import Capture


def files_json(captures: Sequence[Capture], describe: Callable[[Capture], Mapping[str, Any]]) -> dict[str, Any]:
    """Return `file` and its description, or `files` and those of several."""
    if len(captures) == 1:
        return {"file": describe(captures[0])}
    return {"files": [describe(capture) for capture in captures]}


def files_words(captures: Sequence[Capture], names: Callable[[Capture], str]) -> list[str]:
    """Return the words of a title: the file, or how many; the model and the licence, if all have the same."""
    words = [names(captures[0]) if len(captures) == 1 else message("{count} files", count=len(captures))]
    for said in ({capture.model for capture in captures}, {capture.licence for capture in captures}):
        words += [text for text in said if text and len(said) == 1]
    return words

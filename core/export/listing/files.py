"""What results say of the files that they are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...message import message

if TYPE_CHECKING:
    from ...captures.capture import Capture


def files_json(captures: Sequence[Capture], *names: str) -> dict[str, Any]:
    """Return `file`, with its path, its model and these attributes, or `files` and those of several."""
    files = [
        {"path": str(capture.path), "model": capture.model, **{name: getattr(capture, name) for name in names}}
        for capture in captures
    ]
    return {"file": files[0]} if len(files) == 1 else {"files": files}


def files_words(captures: Sequence[Capture], names: Callable[[Capture], str]) -> list[str]:
    """Return the words of a title: the file, or how many; the model and the licence, if all have the same."""
    words = [names(captures[0]) if len(captures) == 1 else message("{count} files", count=len(captures))]
    for said in ({capture.model for capture in captures}, {capture.licence for capture in captures}):
        words += [text for text in said if text and len(said) == 1]
    return words

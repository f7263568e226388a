"""The lines that read one head from its file: queries, keys, masks, biases and the sink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ....captures.capture import HeadSubject
from ..program import Dialect, number
from .hidden import Hiding, hiding
from .tensors import Reader, opened, reader_of

_SIZES = "m, n, d_k = q.shape[1], k.shape[1], q.shape[2]"


@dataclass(frozen=True)
class Loaded:
    """How a program reads a head."""

    reader: Reader
    hides: Hiding
    lines: Sequence[str]  # they make q, k, m, n, d_k and, where there is one, hidden, bias and sink


def loaded(
    subject: HeadSubject,
    dialect: Dialect,
    by_position: bool = False,
    key_head: int | None = None,
    short: bool = False,
) -> Loaded:
    """Return how a head is read; raise NoCodeError if a program cannot.

    `by_position`: the positions of queries are needed. `key_head` is another than the head's own. `short`: numbers
    are in float32.
    """
    layer, at = subject.layer, subject.head
    of_keys = at // (layer.heads // layer.kv_heads) if key_head is None else key_head
    reader = reader_of(subject, dialect, short)
    hides = hiding(subject, reader, by_position)
    lines = [
        *([f"file = {opened(reader.alone)}"] if reader.alone else []),
        reader.vectors("q", layer.q, at),
        reader.vectors("k", layer.k, of_keys),
        _SIZES,
        *hides.lines,
    ]
    if subject.understood.sink is not None:
        lines.append(f"sink = {number(subject.understood.sink)}  # the logit of no key, of this head")
    return Loaded(reader, hides, lines)


def without_unused(program: str) -> str:
    """Return a program without the sizes of queries and keys, if nothing in it needs them."""
    code = "\n".join(line.partition("  # ")[0] for line in program.splitlines() if not line.startswith("#"))
    code = re.sub(r"\"[^\"{]*\"|'[^'{]*'", "", code.replace(_SIZES, ""))
    if re.search(r"\b(m|n|d_k)\b", code):
        return program
    return "".join(line for line in program.splitlines(keepends=True) if line.strip() != _SIZES)

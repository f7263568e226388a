"""The lines that say which keys of a captured head are hidden, and what is added to its logits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ....captures.beside.understood import UsedMask
from ....captures.capture import HeadSubject
from ..program import WIDEST, number
from .tensors import Reader


@dataclass(frozen=True)
class Hiding:
    """What the program says about masks and biases."""

    lines: Sequence[str]
    hides: bool  # whether the lines make `hidden`
    biased: bool  # whether they make `bias`
    some_rows: bool  # whether rows may see no key
    of_texts: bool  # whether `hidden` differs between texts: (texts, m, n), else (m, n)


def hiding(subject: HeadSubject, reader: Reader, by_position: bool) -> Hiding:
    """Return the lines about masks and biases; `by_position`: a rule needs the positions `at` of queries."""
    layer, understood = subject.layer, subject.understood
    before, after = layer.window or (None, None)
    after = 0 if layer.causal is not None else after
    limits = [
        *([] if after is None else [f"j > i{f' + {after}' * bool(after)}"]),
        *([] if before is None else [f"j < i - {before}"]),
        *([] if layer.chunk is None else [f"j // {layer.chunk} != i // {layer.chunk}"]),
    ]
    masks = [each for each in understood.masks if not each.of_queries]
    outside = [each for each in understood.masks if each.of_queries]
    of_texts = bool(any(each.hides for each in masks) or outside or understood.lengths)
    placed = bool(limits or understood.slope is not None or by_position or understood.padding)
    placed |= any(each.of_tokens for each in understood.masks)
    lines = [_positions(subject, reader)] if placed else []
    library = "np" if reader.dialect == "python" else "torch"
    if limits or understood.lengths or understood.slope is not None:
        lines.append(f"i, j = at[:, None], {library}.arange(n)" if placed else f"j = {library}.arange(n)")
    hides: list[str] = []
    biases: list[str] = []
    if understood.lengths is not None:
        made = "np.array" if reader.dialect == "python" else "torch.tensor"
        lengths = f"{made}({list(understood.lengths)})[:, None, None]"
        hides.append(f"{_or(hides)}(j >= {lengths})  # tokens of each text")
    for each in masks:
        if each.adds:
            biases.append(f"{_plus(biases)}{reader.numbers(_mask(each, reader))}")
            hides.append(biases[-1])
        if each.hides:
            name = "bias" if each.adds and len(biases) == 1 else ""
            hides.append(f"{_or(hides)}{_hidden(each, reader, name)}")
    if understood.slope is not None:
        biases.append(f"{_plus(biases)}-{number(understood.slope)} * abs(i - j)  # ALiBi")
        hides.append(biases[-1])
    if of_texts:
        size = "(len(q), m, n)"
        everywhere = f"np.broadcast_to(hidden, {size})" if reader.dialect == "python" else f"hidden.expand{size}"
        if not any(line.startswith("hidden") for line in hides):  # only queries are left out
            hides.append(f"hidden = {library}.zeros({size}, dtype={'bool' if library == 'np' else 'torch.bool'})")
        else:
            hides.append(f"hidden = {everywhere}")
    if understood.padding:
        hides.append("hidden = hidden | hidden.all(-2)[:, at, None]  # a token hidden from all is padding")
    if limits:
        alone = len(limits) == 1 and not hides
        hides.append(f"hidden = {limits[0]}" if alone else f"{_or(hides)}({') | ('.join(limits)})")
    for each in outside:
        shown = "" if each.form == "hidden" else "~"
        text = reader.flags(reader.tensor(each.path, each.name))
        rows = f"{text}.reshape{each.shape}{'[:, at]' if each.of_tokens else ''}"
        if not isinstance(each.form, str):
            rows, shown = f"({rows} <= {number(each.form)})", ""
        hides.append(f"hidden = hidden | {shown}{rows}[..., None]  # queries that do not count")
    lines += hides
    some_rows = of_texts or before is not None or layer.chunk is not None
    return Hiding(lines, any(line.startswith("hidden") for line in hides), bool(biases), some_rows, of_texts)


def _or(hides: Sequence[str]) -> str:
    return "hidden = hidden | " if any(line.startswith("hidden") for line in hides) else "hidden = "


def _plus(biases: Sequence[str]) -> str:
    return "bias = bias + " if biases else "bias = "


def _mask(used: UsedMask, reader: Reader) -> str:
    """Return the expression of one head of a mask, (texts or 1, m or 1, n)."""
    text = f"{reader.tensor(used.path, used.name)}.reshape{used.shape}[:, {used.head}]"
    return f"{text}[:, at]" if used.of_tokens and used.shape[2] > 1 else text


def _hidden(used: UsedMask, reader: Reader, name: str) -> str:
    """Return the expression that says which keys a mask hides; `name` holds its numbers, if it is not empty."""
    if used.form == "visible":
        return f"~{reader.flags(_mask(used, reader))}"
    if used.form == "hidden":
        return reader.flags(_mask(used, reader))
    return f"({name or reader.numbers(_mask(used, reader))} <= {number(used.form)})"


def _positions(subject: HeadSubject, reader: Reader) -> str:
    """Return the line with the positions of queries among the keys."""
    layer, listed = subject.layer, subject.understood.positions
    library, made = ("np", "np.array") if reader.dialect == "python" else ("torch", "torch.tensor")
    if listed is not None:
        first, last = min(listed), max(listed)
        step = max((last - first) // max(len(listed) - 1, 1), 1)
        if listed == tuple(range(first, last + 1, step)):
            return f"at = {library}.arange({first}, {last + 1}, {step})  # positions of queries"
        return textwrap.fill(f"at = {made}([{', '.join(map(str, listed))}])", WIDEST, subsequent_indent="    ")
    ends = "n - m, n" if layer.alignment == "bottom_right" and layer.queries != layer.keys else "m"
    return f"at = {library}.arange({ends})  # positions of queries"

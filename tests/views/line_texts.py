"""The characters of lines, without their roles."""

from collections.abc import Iterable

from attn_tui.tui.views.lines import Line


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


def texts_of(lines: Iterable[Line]) -> list[str]:
    return [text_of(line) for line in lines]

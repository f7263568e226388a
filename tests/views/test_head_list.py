"""The printed list of heads."""

import io

from attn_tui.core.captures.capture import HeadSubject, sample_path
from attn_tui.core.captures.heads import Rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.measurement import Column, Estimate, Measurement
from attn_tui.tui.cli.printing import head_list
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from rich.console import Console

LAYER = open_capture(sample_path()).layers[0]


def shown(head: Measurement[HeadSubject], width: int | None, glyphs: Glyphs = UNICODE) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(head_list([head], width, glyphs))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_narrow_screens_leave_out_less_important_columns() -> None:
    head = measure_head(open_capture(sample_path()), LAYER, 2, [Rule("file", 0.1768)])
    narrow, wide = shown(head, 80), shown(head, None)
    assert max(map(len, narrow)) <= 80
    assert "logit" not in "".join(narrow)
    assert "logit" in "".join(wide)
    assert narrow[-1].split()[:3] == ["0", "2", "4.30"]
    assert narrow[-1].endswith("one-hot")
    assert wide[-1].endswith("one-hot")


def test_extreme_and_missing_values_fit() -> None:
    for number in (None, 0.0, 1e-9, 1e9, 12345.6):
        column = Column("none", 1.0, {s.name: Estimate(number, None) for s in STATISTICS}, {})
        head = Measurement(HeadSubject(LAYER, 0), 1, 1, (column,))
        lines = shown(head, None, ASCII)
        assert len(lines) == 3
        assert all(line.isascii() for line in lines)

"""Every scale rule replayed on a head, as lines."""

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.replay import replay
from attn_tui.core.tables.heads import replay_grid
from attn_tui.tui.panes.capture.replay import replay_lines
from attn_tui.tui.panes.capture.requests import ReplayTable
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from cases import for_each
from line_texts import texts_of


@pytest.fixture(scope="module")
def table() -> ReplayTable:
    capture = open_capture(sample_path())
    header, lines, _ = replay_grid([replay(capture, capture.layers[0], 2)])
    return ReplayTable(0, 2, tuple(header), tuple(map(tuple, lines)), ("What is said below.",), {})


def test_rules_have_their_labels_and_numbers_their_points_in_one_line(table: ReplayTable) -> None:
    header, *rows = texts_of(replay_lines(table, 82, UNICODE))
    rows = rows[: len(table.lines)]
    assert header.split() == ["rule", "×", "KL", "entropy", "Δ", "1-hot", "%", "satur"]
    assert rows[0].startswith(" file = 1/√d_k")
    assert not any("sqrt" in row or "-" in row for row in rows)
    points = [[at for at, sign in enumerate(row[24:]) if sign == "."] for row in rows]
    assert len({places[-1] for places in points}) == 1
    assert len({places[-3] for places in points if len(places) > 4}) == 1


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [40, 52, 82, 160])
def test_lines_fit_and_rules_without_room_are_counted(table: ReplayTable, width: int, glyphs: Glyphs) -> None:
    lines = replay_lines(table, width, glyphs)
    assert max(map(line_width, lines)) <= width
    text = "\n".join(texts_of(lines))
    assert text.isascii() or not glyphs.ascii
    named = sum(row[0].count(" = ") + 1 for row in table.lines)
    shown = 0
    for line in texts_of(lines)[1 : 1 + len(table.lines)]:
        shown += line.count(" = ") + 1
        if " more " in line:
            shown += int(line.split(" more ")[0].split()[-1])
    assert shown == named

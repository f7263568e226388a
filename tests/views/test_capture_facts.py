"""A layer of a file, the printed list of its heads, and every scale rule replayed on one."""

import io
from dataclasses import replace

import pytest
from attn_tui.core.captures.capture import HeadSubject, Layer, sample_path
from attn_tui.core.captures.heads import Rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.replay import replay
from attn_tui.core.diagnosis.results import Replay
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.measurement import Column, Estimate, Measurement
from attn_tui.core.tables.heads import replay_grid
from attn_tui.tui.cli.printing import head_list
from attn_tui.tui.panes.capture.parts import replay_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.results.ranked import capture_lines, layer_facts, statistic_lines
from cases import for_each
from line_texts import texts_of
from rich.console import Console

LAYER: Layer = open_capture(sample_path()).layers[0]


def test_everything_that_enters_softmax_is_named() -> None:
    assert "scale × 0.177" in layer_facts(LAYER, UNICODE)
    stored = replace(LAYER, scale=1.0, prescaled=(0.25, 0.5))
    assert "scale × 0.125, of which × 0.125 is in q and k" in layer_facts(stored, UNICODE)
    for scales in (replace(LAYER, scale=None, head_scales=(1.0,) * 12), replace(LAYER, scale=None, scales="scale")):
        assert "a scale for each head" in layer_facts(scales, UNICODE)
    assert "scale not given" in layer_facts(replace(LAYER, scale=None), UNICODE)
    layer = replace(LAYER, causal="top_left", window=(127, 0), mask="m", bias="alibi", sinks="sinks", rows="rows")
    facts = layer_facts(layer, UNICODE)
    for fact in ("causal", "window 127 before", "mask", "bias", "sink", "some queries of the text"):
        assert fact in facts.split(", "), fact
    assert "window 3 before, all after" in layer_facts(replace(LAYER, window=(3, None)), UNICODE)
    assert "chunks of 64" in layer_facts(replace(LAYER, chunk=64), UNICODE)
    assert "bias" not in layer_facts(LAYER, UNICODE)
    assert layer_facts(LAYER, UNICODE).startswith("d_k 32, ")
    assert layer_facts(replace(LAYER, file="step-20.npz"), UNICODE).startswith("step-20.npz, d_k 32, ")


def test_the_statistics_of_a_head_are_all_that_have_a_value_or_the_leading_ones() -> None:
    names = ("logit_mean", "logit_std", "entropy", "max_weight", "dead_rows")
    measured = {name: Estimate(0.5, None) for name in names} | {"dead_rows": Estimate(0.0, None)}
    measured["entropy"] = Estimate(None, None)
    lines = [" ".join(line.split()) for line in texts_of(statistic_lines(measured, 30, 9, UNICODE))]
    assert lines == ["logit mean 0.5", "logit std 0.5", "max weight 50 %", "dead rows none"]
    fewer = statistic_lines(measured, 30, 3, UNICODE)
    assert [" ".join(line.split()) for line in texts_of(fewer)] == lines[1:]
    assert {line_width(line) for line in fewer} == {30}


def test_long_names_are_cut_in_the_middle_and_a_long_title_is_shortened() -> None:
    capture = open_capture(sample_path())
    for width, title in ((40, "layer 0 · head 3"), (14, "0/3")):
        lines = texts_of(capture_lines(capture, capture.layers[0], 3, {}, (0, 3), width, UNICODE))
        assert lines[0] == title
        assert max(map(len, lines)) <= width
        named = next(line for line in lines if line.startswith("sent"))
        assert named.endswith("L6-v2")
        assert ("…" in named) == (width < 38)


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


@pytest.fixture(scope="module")
def found() -> Replay:
    capture = open_capture(sample_path())
    return replay(capture, capture.layers[0], 2)


def test_rules_have_their_labels_and_numbers_their_points_in_one_line(found: Replay) -> None:
    header, *rows = texts_of(replay_lines(found, 82, UNICODE))
    rows = rows[: len(replay_grid([found]).lines)]
    assert header.split() == ["rule", "×", "KL", "entropy", "Δ", "1-hot", "%", "satur"]
    assert rows[0].startswith(" file = 1/√d_k")
    roles = [{role for text, role in line if text.strip()} for line in replay_lines(found, 82, UNICODE)]
    assert roles[: len(rows) + 1] == [{"dim"}, {"scaled"}, *[{"text"}] * (len(rows) - 1)]
    assert not any("sqrt" in row or "-" in row for row in rows)
    points = [[at for at, sign in enumerate(row[24:]) if sign == "."] for row in rows]
    assert len({places[-1] for places in points}) == 1
    assert len({places[-3] for places in points if len(places) > 4}) == 1


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [40, 52, 82, 160])
def test_lines_fit_and_rules_without_room_are_counted(found: Replay, width: int, glyphs: Glyphs) -> None:
    lines = replay_lines(found, width, glyphs)
    assert max(map(line_width, lines)) <= width
    text = "\n".join(texts_of(lines))
    assert text.isascii() or not glyphs.ascii
    named = sum(row[0].count(" = ") + 1 for row in replay_grid([found]).lines)
    shown = 0
    for line in texts_of(lines)[1 : 1 + len(replay_grid([found]).lines)]:
        shown += line.count(" = ") + 1
        if " more " in line:
            shown += int(line.split(" more ")[0].split()[-1])
    assert shown == named

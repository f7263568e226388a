"""What Heads, Capture, Claims, Watch, Learn and Train show in Chinese: lines as wide as in English."""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from attn_tui.core.attention.cost import Layer, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.claims.claim import UNCLAIMED, Claim, Figure, Outcome, Reading, at_least, value
from attn_tui.core.claims.examine import examine
from attn_tui.core.diagnosis.heads.attention import attention_row
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.training.settings import Race, Result
from attn_tui.core.training.snapshot import Snapshot as RaceSoFar
from attn_tui.core.watching.snapshot import Snapshot, snapshot
from attn_tui.core.watching.step import parse_line
from attn_tui.tui.panes.capture.heatmap import HeadMap, map_lines, mark_lines
from attn_tui.tui.panes.capture.ranked import RankedHead, ranked_lines
from attn_tui.tui.panes.capture.row import row_lines
from attn_tui.tui.panes.claims.view import claim_lines, claim_list, overview_lines
from attn_tui.tui.panes.heads.shape import shape_lines
from attn_tui.tui.panes.heads.tables import sharing_lines
from attn_tui.tui.panes.heads.view import cache_lines, flops_lines, matrix_lines
from attn_tui.tui.panes.learn.items import ITEMS, Attempt
from attn_tui.tui.panes.learn.view import item_lines
from attn_tui.tui.panes.train.view import result_lines, setting_lines
from attn_tui.tui.views.glyphs import IN_LANGUAGE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results import watching
from attn_tui.tui.views.results.watch_chart import chart_lines
from cases import for_each
from line_texts import text_of

CHINESE = IN_LANGUAGE["zh"]
CAPTURE = open_capture(sample_path())
FIRST = CAPTURE.layers[0]
Write = Callable[[int, Glyphs], Sequence[Line]]  # lines of a width


def run() -> Snapshot:
    """A run of which one head is over the limit and another nears it, beside a baseline."""
    steps = [
        parse_line(json.dumps({"step": 10 * n, "max_logit": [[2.0, 30.0 * 1.1**n], [120.0, 4.0]]})) for n in range(9)
    ]
    found = snapshot(steps, 100, baseline=steps[0])
    assert found is not None
    return found


def outcome() -> Outcome:
    """A claim with figures that agree, are off, and are not claimed."""
    figures = (
        Figure("variance", value(64), lambda _: Reading(Estimate(63.9, 0.4), 64.0)),
        Figure("weight", at_least(0.99), lambda _: Reading(Estimate(0.5, 0.01))),
        Figure("other", UNCLAIMED, lambda _: Reading(None, 3.0)),
    )
    return examine(Claim("made-up", "It is so.", "a note", "It is.", figures=figures))


def race() -> RaceSoFar:
    """A race of two rules of which one never learned."""
    results = tuple(
        Result(rule, 1.0, loss, 0.1, recalled, steps, diverged, 0.9, 0.1, 2.0)
        for rule, loss, recalled, steps, diverged in (
            ("none", math.nan, math.nan, None, 0.5),
            ("sqrt_d_k", 0.02, 0.99, 28.0, 0.0),
        )
    )
    return RaceSoFar(Race(rules=("none", "sqrt_d_k")), 10, {}, results)


def listed() -> list[RankedHead]:
    measured = measure_head(CAPTURE, FIRST, 0, [file_rule(FIRST)]).columns[0].measured
    return [RankedHead(0, 0, measured, ("because",)), RankedHead(0, 1, None, (), True)]


def head_map() -> HeadMap:
    return HeadMap([0, 1], [4, 4], {(0, 0): 1.0, (0, 1): 2.0}, {(0, 0): "saturated", (0, 1): "sink"})


def claims(width: int, glyphs: Glyphs) -> Sequence[Line]:
    tested = outcome()
    found = {tested.claim.id: tested}
    return [
        *claim_list([tested.claim], found, 0, width, 3, glyphs),
        *overview_lines([tested.claim], found, 0, width, 12, glyphs),
    ]


def watch(width: int, glyphs: Glyphs) -> Sequence[Line]:
    found = run()
    return [
        *watching.ranked_lines(found, width, glyphs, chosen=(1, 0)),
        *watching.map_lines(found, watching.LOGITS, (0, 0), (width, 8), glyphs),
        *watching.head_lines(found, (0, 1), (width, 20), glyphs),
        *chart_lines(found, (0, 1), width, 12, glyphs),
    ]


def shape(width: int, glyphs: Glyphs) -> Sequence[Line]:
    values = {**vars(PRESETS["llama-3-8b"].layer)}
    return shape_lines(values, {"d_v": 128}, "heads", "", width, 24, glyphs)


def row(width: int, glyphs: Glyphs) -> Sequence[Line]:
    return row_lines(attention_row(CAPTURE, FIRST, 5, [file_rule(FIRST)], 0, 12), 0, None, width, 16, glyphs)


def capture(width: int, glyphs: Glyphs) -> Sequence[Line]:
    found = head_map()
    return [
        *map_lines(found, STATISTIC["entropy"], (0, 0), width, 10, glyphs),
        *mark_lines(found, width, glyphs),
        *ranked_lines(listed(), STATISTIC["saturation"], width, glyphs, 0),
        *row(width, glyphs),
    ]


def settings(width: int, glyphs: Glyphs) -> Sequence[Line]:
    return setting_lines(race().race, "rate", "", None, width, 24, glyphs)


@for_each("write", [claims, watch, shape, capture, settings])
@for_each("width", [38, 60, 120])
def test_every_line_is_as_wide_as_the_screen_and_where_it_is_in_english(write: Write, width: int) -> None:
    lines = write(width, CHINESE)
    assert len(lines) == len(write(width, IN_LANGUAGE["en"]))
    for line in lines:
        assert line_width(line) == width or not line, text_of(line)


def tables() -> list[Sequence[Line]]:
    found = cost(replace(PRESETS["llama-3-8b"].layer, batch=2))
    latent = cost(PRESETS["deepseek-v3"].layer)
    return [
        *(write(each, CHINESE) for each in (found, latent) for write in (matrix_lines, cache_lines, flops_lines)),
        sharing_lines(cost(Layer()), CHINESE)[1:],
        result_lines(race(), 100, CHINESE)[:3],
    ]


@for_each("width", [38, 78, 100])
@for_each("at", range(0, len(ITEMS), 4))
def test_an_item_of_the_tour_fits_its_width(at: int, width: int) -> None:
    for line in item_lines(ITEMS[at], Attempt(), None, width, 60, CHINESE):
        assert line_width(line) <= width, text_of(line)


@pytest.mark.parametrize("width", [40, 78, 100])
def test_a_claim_fits_its_width(width: int) -> None:
    tested = outcome()
    for line in claim_lines(tested.claim, tested, width, CHINESE, tabular=True):
        assert line_width(line) <= width, text_of(line)


NAMES = {
    "attn", "tui", "softmax", "Softmax", "FLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "KiB", "MiB", "GiB", "TiB", "sgd",
    "adam", "sqrt", "log", "PgDn", "PgUp", "Enter", "logit", "RUN",
    "config", "json", "meta", "Llama", "made", "CLS", "SEP", "weights", "NaN", "bfloat", "model", "dkv",
}  # fmt: skip


def latin(lines: Sequence[Line]) -> set[str]:
    """The words of Latin letters in lines."""
    return {word for line in lines for word in re.findall(r"[A-Za-z]{3,}", text_of(line))}


@for_each("write", [claims, watch, shape, capture, settings])
@for_each("width", [60, 120])
def test_all_words_but_names_are_chinese(write: Write, width: int) -> None:
    written = {"variance", "weight", "other", "because"}  # texts of this file
    assert latin(write(width, CHINESE)) - NAMES - written == set()


@for_each("table", tables())
def test_a_table_is_in_chinese_with_columns_that_end_in_the_same_cells(table: Sequence[Line]) -> None:
    assert latin(table) - NAMES == set()
    assert len({line_width(line) for line in table}) == 1

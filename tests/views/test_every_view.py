"""Every view at any width in each alphabet: lines fit, ASCII is ASCII, and Chinese has no English word but names."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from attn_tui.core.attention.cost import SHAPE_FIELDS, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.attention import attention_row
from attn_tui.core.lab.experiment import run
from attn_tui.core.learning.claim import UNCLAIMED, Claim, ClaimFigure, at_least, value
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import ITEMS, Attempt
from attn_tui.core.learning.measure import examine
from attn_tui.core.learning.outcome import Outcome
from attn_tui.core.learning.sources import Reading
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.scales import FORMULA_NAMES
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.tables.cost import cost_blocks, variants
from attn_tui.core.tables.table import TextGrid
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.training.settings import RACE_FIELDS, Race, RaceResult
from attn_tui.core.training.snapshot import RaceSnapshot as RaceSoFar
from attn_tui.core.watching.snapshot import RunSnapshot, snapshot
from attn_tui.core.watching.step import parse_line
from attn_tui.tui.app.keys import all_commands, help_keys
from attn_tui.tui.panes.capture.heatmap import HeadMap, map_lines, mark_lines
from attn_tui.tui.panes.capture.row import row_lines
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.heads.pane import shape_lines
from attn_tui.tui.panes.sweep.curve_view import reading_lines, title_line
from attn_tui.tui.panes.train.widget import result_lines, setting_lines, share_lines
from attn_tui.tui.views.bars import key_line, parameters_status, progress_status, tab_line, top_line
from attn_tui.tui.views.export import Form, form_lines
from attn_tui.tui.views.fields.entry import Draft
from attn_tui.tui.views.fields.panel import FieldEntry, applicable, panel_lines
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.views.grid import block_lines
from attn_tui.tui.views.help import help_lines
from attn_tui.tui.views.lines import Line, line_width, wrapped
from attn_tui.tui.views.notice import GREETING
from attn_tui.tui.views.page import picture_columns
from attn_tui.tui.views.plots.histograms import grid_lines
from attn_tui.tui.views.plots.lab_pictures import gauge_lines
from attn_tui.tui.views.results import watching
from attn_tui.tui.views.results.cards import item_lines
from attn_tui.tui.views.results.claims import claim_lines, overview_lines
from attn_tui.tui.views.results.lab_page import LabPage, page_lines
from attn_tui.tui.views.results.ranked import RankedHead, ranked_lines
from attn_tui.tui.views.results.sentence import row_words, sentence
from attn_tui.tui.views.results.table import ESSENTIAL, TableContents, layout, table_lines, table_rows, with_theory
from attn_tui.tui.views.results.watch_page import page_lines as watch_page_lines
from cases import for_each, present
from line_texts import text_of

CHINESE = IN_LANGUAGE["zh"]
CAPTURE = open_capture(sample_path())
FIRST = CAPTURE.layers[0]
ASKED = Parameters(d_k=64, n_keys=16, n_queries=8, batch=4)
MEASURED = run(ASKED)
THEORY = theory_of(MEASURED)
CONTENTS = with_theory(MEASURED, THEORY)
CHANGES = ({"against": "d_k,precision=bfloat16"}, {"scale": "rms_sqrt_d_k", "against": "none"}, {"n_keys": 1})
GAUGED = [with_theory(each, theory_of(each)) for each in (run(replace(ASKED, **change)) for change in CHANGES)]
KEYS = help_keys(all_commands(), {})
LONGEST = Parameters(
    d_k=16_384, components="student_t", degrees_of_freedom=1_000, scale="custom", multiplier=1.234_567_89e-6,
    mean_q=-99.123_456_789, seed=2**32 - 1,
)  # fmt: skip
Write = Callable[[int, Glyphs], Iterable[Line]]  # lines of a width

# Names, formulas and units, which are the same in every language: in these panes, and elsewhere.
NAMES = {
    "attn", "tui", "softmax", "Softmax", "FLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "KiB", "MiB", "GiB", "TiB", "sgd",
    "adam", "sqrt", "log", "PgDn", "PgUp", "Enter", "logit", "RUN",
    "config", "json", "meta", "Llama", "made", "CLS", "SEP", "weights", "NaN", "bfloat", "model", "dkv",
}  # fmt: skip
SAME = {
    "attn", "tui", "softmax", "max", "min", "exp", "log", "std", "tanh", "sigmoid", "cos", "var", "diag", "row",
    "sink", "bfloat", "float", "fp", "NaN", "inf", "nat", "seed", "batch", "SVG", "JSON", "CSV", "Markdown",
    "NumPy", "PyTorch", "Enter", "Esc", "Tab", "PgUp", "PgDn", "Backspace", "Ctrl", "Alt", "Space", "Home", "End",
    "Del", "Ins", "Shift", "Softmax", "Transformer", "BERT", "GPT", "Clip", "Frobenius", "Var", "precision", "sqrt",
    "entmax", "sparsemax", "svg", "BLEU", "RMS", "Adam", "score", "model", "logit", "logits",
}  # fmt: skip


def watched() -> RunSnapshot:
    """A run of which one head is over the limit and another nears it, beside a baseline."""
    steps = [
        parse_line(json.dumps({"step": 10 * n, "max_logit": [[2.0, 30.0 * 1.1**n], [120.0, 4.0]]})) for n in range(9)
    ]
    return present(snapshot(steps, 100, baseline=steps[0]))


def outcome() -> Outcome:
    """A claim with figures that agree, are off, and are not claimed."""
    figures = (
        ClaimFigure("variance", value(64), Reading(Estimate(63.9, 0.4), 64.0)),
        ClaimFigure("weight", at_least(0.99), Reading(Estimate(0.5, 0.01))),
        ClaimFigure("other", UNCLAIMED, Reading(None, 3.0)),
    )
    return examine(Claim("made-up", "It is so.", "a note", "It is.", figures=figures))


def race() -> RaceSoFar:
    """A race of two rules of which one never learned."""
    results = tuple(
        RaceResult(rule, 1.0, loss, 0.1, recalled, steps, diverged, 0.9, 0.1, 2.0)
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
        *overview_lines(found, tested.claim.id, width, 12, glyphs),
    ]


def watch(width: int, glyphs: Glyphs) -> Sequence[Line]:
    found = watched()
    return [
        *watching.ranked_lines(found, width, glyphs, chosen=(1, 0)),
        *watching.map_lines(found, watching.LOGITS, (0, 0), (width, 8), glyphs),
        *watching.head_lines(found, (0, 1), (width, 20), glyphs),
        *watch_page_lines(found, (0, 1), lambda _: [], width, 20, glyphs),
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


def tables() -> list[Sequence[Line]]:
    found = cost(replace(PRESETS["llama-3-8b"].layer, batch=2))
    blocks = [*cost_blocks(found, None), *cost_blocks(cost(PRESETS["deepseek-v3"].layer), None)]
    grids = [block for block in blocks if isinstance(block, TextGrid)]
    beside = variants(found, None)
    grids.append(TextGrid(beside.header[:-1], [line[:-1] for line in beside.lines[:10]]))
    full = [[[cell or "0" for cell in line] for line in (each.header, *each.lines)] for each in grids]
    return [
        *(block_lines([TextGrid(header, lines)], 300, CHINESE)[1:-1] for header, *lines in full),
        result_lines(race(), 100, CHINESE)[:3],
        share_lines(race(), 100, CHINESE),
    ]


def table(width: int, glyphs: Glyphs) -> Iterable[Line]:
    for contents in (CONTENTS, TableContents(MEASURED.columns)):
        for turn in range(3):
            yield from table_lines(table_rows(contents), contents, layout(contents, width, turn), glyphs)
        yield from table_lines(table_rows(contents, ESSENTIAL), contents, layout(contents, width), glyphs)


def panel(width: int, glyphs: Glyphs) -> Iterable[Line]:
    number = FieldEntry("d_k", "1" * 40, ASKED, ASKED)
    refused = FieldEntry("d_k", "x", ASKED, ASKED, "d_k: must be; " * 4)
    for parameters in (ASKED, LONGEST):
        for focus in (None, "mean_q", *(field.name for field in applicable(parameters)[::6])):
            for editing in (None, number, refused):
                for height in (1, 10, 22):
                    lines = panel_lines(parameters, width, height, glyphs, focus, editing)
                    assert len(lines) == height
                    yield from lines


def gauges(width: int, glyphs: Glyphs) -> Iterable[Line]:
    for change in (
        {"against": "d_k,precision=bfloat16"},
        {"scale": "rms_sqrt_d_k", "against": "none"},
        {"n_keys": 1},
    ):
        measured = run(replace(ASKED, **change))
        contents = with_theory(measured, theory_of(measured))
        yield from gauge_lines(contents, picture_columns(width), glyphs)
        for height in (4, 10, 22, 38):
            lines = page_lines(LabPage(ASKED, contents, 4), width, height, glyphs)
            assert len(lines) == height
            yield from lines


def ends(width: int, glyphs: Glyphs) -> Iterable[Line]:
    yield top_line(("Lab", "Capture"), "Lab", parameters_status(ASKED, glyphs), width, glyphs)
    yield top_line(("Lab", "Capture"), "Lab", progress_status(0.3, glyphs), width, glyphs)
    for row in PANES.values():
        yield key_line(row.load().KEYS, width, glyphs)


def costs(width: int, glyphs: Glyphs) -> Iterable[Line]:
    for preset in PRESETS.values() if width == 60 else ():
        yield from block_lines(cost_blocks(cost(preset.layer), preset), width, glyphs)


def helped(width: int, glyphs: Glyphs) -> Iterable[Line]:
    for about in (None, *FIELDS, *STATISTIC.values()) if width == 80 else ():
        for row in PANES.values() if about is None else ():
            yield from help_lines(about, row.about, row.load().KEYS, width, glyphs)
        yield from help_lines(about, (), (), width, glyphs)


def told(width: int, glyphs: Glyphs) -> Iterable[Line]:
    tested = outcome()
    yield from claim_lines(tested.claim, tested, width, glyphs, tabular=True)
    for item in ITEMS[::4]:
        yield from item_lines(item, Attempt(), None, width, 60, glyphs)


FRAMED = [claims, watch, shape, capture, settings, table, panel, gauges, ends]


@for_each("write", [*FRAMED, costs, helped, told])
@for_each("width", [38, 60, 80, 118, 160])
@for_each("glyphs", [UNICODE, ASCII, CHINESE])
def test_lines_fit_any_width_in_every_alphabet(write: Write, width: int, glyphs: Glyphs) -> None:
    for line in write(width, glyphs):
        assert line_width(line) == width or (line_width(line) < width and (not line or write not in FRAMED)), line
        assert text_of(line).isascii() or not glyphs.ascii


@for_each("write", FRAMED)
@for_each("width", [38, 60, 120])
def test_a_view_has_as_many_lines_in_chinese_as_in_english(write: Write, width: int) -> None:
    assert len([*write(width, CHINESE)]) == len([*write(width, UNICODE)])


def latin(lines: Iterable[Line]) -> set[str]:
    """The words of Latin letters in lines."""
    return {word for line in lines for word in re.findall(r"[A-Za-z]{3,}", text_of(line))}


@for_each("table", tables())
def test_a_table_is_in_chinese_with_columns_that_end_in_the_same_cells(table: Sequence[Line]) -> None:
    assert latin(table) - NAMES == set()
    assert len({line_width(line) for line in table}) == 1


def bars(glyphs: Glyphs) -> Iterable[Line]:
    yield tab_line(tuple(PANES), "Lab", 120, glyphs)
    yield from parameters_status(ASKED, glyphs)
    yield from progress_status(0.3, glyphs, "d_k 64", (2, 7.1))
    for row in PANES.values():
        yield key_line(row.load().KEYS, 400, glyphs)


def lab(glyphs: Glyphs) -> Iterable[Line]:
    for width in (38, 60, 80, 118):
        yield from table_lines(table_rows(CONTENTS), CONTENTS, layout(CONTENTS, width), glyphs)
    for height in (10, 22, 38):
        yield from page_lines(LabPage(ASKED, CONTENTS, 4), 118, height, glyphs)
    yield from grid_lines(MEASURED.columns, 118, 40, glyphs)
    yield from panel_lines(ASKED, 30, 40, glyphs, "precision")
    for text in (sentence(CONTENTS, glyphs), glyphs.say(GREETING)):
        yield from wrapped(text, 118)


def explained(glyphs: Glyphs) -> Iterable[Line]:
    for statistic in STATISTIC.values():
        text = row_words(statistic, CONTENTS, glyphs, False).replace(glyphs.say(statistic.source), "")
        yield from wrapped(text, 118)


def helps(glyphs: Glyphs) -> Iterable[Line]:
    for title, row in PANES.items():
        if title in ("Lab", "Sweep", "Softmax", "Rules"):
            yield from help_lines(None, row.about, row.load().KEYS, 78, glyphs)


def claimed(glyphs: Glyphs) -> Iterable[Line]:
    for claim in CLAIMS:
        for text in (claim.title, *(figure.label for figure in claim.figures)):
            yield ((glyphs.say(text), "text"),)


def fields(glyphs: Glyphs) -> Iterable[Line]:
    for field in (*FIELDS, *SHAPE_FIELDS, *RACE_FIELDS):
        words = re.split(r"[^\w.-]+", glyphs.say(field.accepted))
        names = {*field.choices, *FORMULA_NAMES, "unscaled", "name", "value"}
        yield ((" ".join(word for word in words if word not in names), "text"),)


def forms(glyphs: Glyphs) -> Iterable[Line]:
    yield from form_lines(Form("Lab", "svg", Draft.of("a.svg")), "", 72, 12, glyphs)
    yield from form_lines(Form("Lab", "svg", Draft.of("a.svg"), question="Replace it?"), "", 72, 12, glyphs)[-1:]


def sweep(glyphs: Glyphs) -> Iterable[Line]:
    yield title_line(STATISTIC["entropy"], True, glyphs)
    yield from reading_lines(ASKED, CONTENTS, STATISTIC["entropy"], 118, glyphs)
    yield from reading_lines(ASKED, None, STATISTIC["entropy"], 118, glyphs)


PARTS = {part.__name__: part for part in (bars, lab, explained, helps, claimed, fields, forms, sweep)}


@for_each("part", PARTS)
def test_no_english_word_but_names_is_on_a_chinese_screen(part: str) -> None:
    assert latin(PARTS[part](CHINESE)) - SAME == set()


@for_each("write", [claims, watch, shape, capture, settings])
@for_each("width", [60, 120])
def test_all_words_of_a_pane_but_names_are_chinese(write: Write, width: int) -> None:
    written = {"variance", "weight", "other", "because"}  # texts of this file
    assert latin(write(width, CHINESE)) - NAMES - written == set()

"""Screens in Chinese: no English word but names, and lines as wide as in English."""

import re
from collections.abc import Iterable

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.claims.catalogue import CLAIMS
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.scales import FORMULA_NAMES
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.training.settings import RACE_FIELDS
from attn_tui.tui.app.keys import all_commands, help_keys
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.sweep.curve_view import reading_lines, title_line
from attn_tui.tui.views.bars import key_line, parameters_status, progress_status, tab_line
from attn_tui.tui.views.export import Form, form_lines
from attn_tui.tui.views.fields.entry import Draft
from attn_tui.tui.views.fields.panel import panel_lines
from attn_tui.tui.views.glyphs import IN_LANGUAGE, Glyphs
from attn_tui.tui.views.help import help_lines
from attn_tui.tui.views.lines import Line, line_width, wrapped
from attn_tui.tui.views.notice import GREETING
from attn_tui.tui.views.plots.gauge import gauge_lines, threshold_note
from attn_tui.tui.views.plots.histograms import grid_lines
from attn_tui.tui.views.results.advice import advice
from attn_tui.tui.views.results.sentence import row_words, sentence
from attn_tui.tui.views.results.table import layout, table_lines, table_rows, with_theory
from cases import for_each
from line_texts import text_of

ZH = IN_LANGUAGE["zh"]
ASKED = Parameters(d_k=64, n_keys=16, n_queries=8, batch=4)
MEASURED = run(ASKED)
THEORY = theory_of(MEASURED)
CONTENTS = with_theory(MEASURED, THEORY)
KEYS = help_keys(all_commands(), {})

# Names, formulas and units, which are the same in every language.
SAME = {
    "attn", "tui", "softmax", "max", "min", "exp", "log", "std", "tanh", "sigmoid", "cos", "var", "diag", "row",
    "sink", "bfloat", "float", "fp", "NaN", "inf", "nat", "seed", "batch", "SVG", "JSON", "CSV", "Markdown",
    "NumPy", "PyTorch", "Enter", "Esc", "Tab", "PgUp", "PgDn", "Backspace", "Ctrl", "Alt", "Space", "Home", "End",
    "Del", "Ins", "Shift", "Softmax", "Transformer", "BERT", "GPT", "Clip", "Frobenius", "Var", "precision", "sqrt",
    "entmax", "sparsemax", "svg", "BLEU", "RMS", "Adam", "score", "model",
}  # fmt: skip


def bars(glyphs: Glyphs) -> Iterable[Line]:
    yield tab_line(tuple(PANES), "Lab", 120, glyphs)
    yield from parameters_status(ASKED, glyphs)
    yield from progress_status(0.3, glyphs, "d_k 64", (2, 7.1))
    for row in PANES.values():
        yield key_line(row.load().KEYS, 400, glyphs)


def lab(glyphs: Glyphs) -> Iterable[Line]:
    for width in (38, 60, 80, 118):
        yield from table_lines(table_rows(CONTENTS), CONTENTS, layout(CONTENTS, width), glyphs)
    yield from gauge_lines(CONTENTS, 118, 3, glyphs)
    yield from grid_lines(MEASURED.columns, 118, 40, glyphs)
    yield from panel_lines(ASKED, 30, 40, glyphs, "precision")
    column, exact = MEASURED.columns[1], THEORY.prediction.columns[1]
    said = (sentence(CONTENTS, glyphs), advice(ASKED, column, exact.saturation, glyphs), threshold_note(2.0, glyphs))
    for text in (*said, glyphs.say(GREETING)):
        yield from wrapped(text, 118)


def explained(glyphs: Glyphs) -> Iterable[Line]:
    for statistic in STATISTIC.values():
        text = row_words(statistic, CONTENTS, glyphs, False).replace(glyphs.say(statistic.source), "")
        yield from wrapped(text, 118)


def helps(glyphs: Glyphs) -> Iterable[Line]:
    for title, row in PANES.items():
        if title in ("Lab", "Sweep", "Softmax", "Rules"):
            yield from help_lines(None, row.about, KEYS[title], 78, glyphs)


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
    words = {word for line in PARTS[part](ZH) for word in re.findall(r"[A-Za-z]{3,}", text_of(line))}
    assert words - SAME == set()


@pytest.mark.parametrize("part", ["lab", "sweep"])
def test_chinese_lines_are_no_wider_than_the_screen(part: str) -> None:
    assert max(map(line_width, PARTS[part](ZH))) <= 118

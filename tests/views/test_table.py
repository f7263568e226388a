"""The table of statistics at every width, on screen and in print, and what statistics mean."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import OF_FIRST_VIEW, STATISTIC, STATISTICS, Statistic
from attn_tui.core.statistics.measurement import Column, Estimate
from attn_tui.core.theory.predict import deviations, predict
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.numbers import aligned, aligned_share, error
from attn_tui.tui.views.results.lab_page import LabPage, page_lines
from attn_tui.tui.views.results.sentence import sentence
from attn_tui.tui.views.results.table import (
    CELL,
    ESSENTIAL,
    FIRST_GROUP,
    LABEL,
    THEORY,
    TableContents,
    column_title,
    head_line,
    layout,
    meaning,
    measured_text,
    rich_table,
    row_line,
    rows_for,
    table_lines,
    table_rows,
)
from cases import for_each, present
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of, texts_of
from rich.console import Console

ASKED = Parameters(d_k=64, n_keys=16, n_queries=8, batch=4)
MEASURED = run(ASKED)
PREDICTED = predict(ASKED)
BARE = TableContents(MEASURED.columns)
FULL = TableContents(MEASURED.columns, PREDICTED.columns, deviations(MEASURED, PREDICTED))
BESIDE = LABEL + 2 * (CELL + THEORY)  # the width from which theory is beside measured values
SHARES = [statistic for statistic in STATISTICS if statistic.unit == "share"]


def drawn(contents: TableContents, width: int, instead: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """Return the whole table as the app shows it."""
    return table_lines(table_rows(contents), contents, layout(contents, width, instead), glyphs)


def line_of(name: str, contents: TableContents, width: int, instead: bool = False) -> str:
    """Return the line of one statistic."""
    row = next(row for row in table_rows(contents) if row.statistic is STATISTIC[name])
    return text_of(row_line(row, contents, layout(contents, width, instead), UNICODE))


def with_values(columns: Sequence[Column], **values: Estimate) -> list[Column]:
    """Return the same columns with other estimates."""
    return [replace(column, measured={**column.measured, **values}) for column in columns]


@given(width=st.integers(40, 200), value=st.floats(-1e300, 1e300), stderr=st.floats(1e-9, 9e9))
def test_numbers_keep_their_width(width: int, value: float, stderr: float) -> None:
    other = with_values(MEASURED.columns, entropy=Estimate(value, stderr), max_weight=Estimate(value / 1e3, stderr))
    for name in ("entropy", "max_weight"):
        row = next(row for row in table_rows(BARE) if row.statistic is STATISTIC[name])
        shape = layout(BARE, width)
        before, after = (row_line(row, contents, shape, UNICODE) for contents in (BARE, TableContents(other)))
        assert [line_width((span,)) for span in before] == [line_width((span,)) for span in after]


@pytest.mark.parametrize("width", [40, 47, 55])
def test_a_narrow_table_shows_values_their_errors_and_exact_values_in_turn(width: int) -> None:
    statistic = STATISTIC["entropy"]
    wanted = {
        "value": [aligned(column.measured["entropy"].value, UNICODE).strip() for column in FULL.columns],
        "±": [f"±{error(column.measured['entropy'].stderr, UNICODE).strip()}" for column in FULL.columns],
        "exact": [aligned(theory.values["entropy"], UNICODE).strip() for theory in FULL.theory],
    }
    at = [row.statistic for row in table_rows(FULL)].index(statistic)
    for turn, (title, texts) in enumerate(wanted.items()):
        for again in (turn, turn + 3):
            head = text_of(drawn(FULL, width, again)[0])
            assert head.split()[0] == title
            assert head[LABEL:].split()[0] == "unscaled"
            assert text_of(drawn(FULL, width, again)[1 + at]).split()[1:] == texts
    assert [text_of(drawn(BARE, width, turn)[0]).split()[0] for turn in range(3)] == ["value", "±", "value"]


def test_the_gauge_says_in_words_where_softmax_saturates_at_every_width() -> None:
    for contents in (
        FULL,
        TableContents(MEASURED.columns, predict(replace(ASKED, scale="none")).columns, FULL.deviations),
    ):
        for width in range(40, 130):
            (row,) = (row for row in table_rows(contents) if row.saturation)
            words = text_of(row_line(row, contents, layout(contents, width), UNICODE))
            assert len(re.findall(r"from d_k \d+|never|below saturation", words)) == 2, (width, words)
    row = next(row for row in table_rows(FULL) if row.saturation)
    for width in (58, 80, 118, 200):
        line = text_of(row_line(row, FULL, layout(FULL, width), UNICODE))
        assert "from d_k 6" in line
        assert "never saturated" in line
        ratios = [aligned(column.saturation.ratio, UNICODE).strip() for column in FULL.theory if column.saturation]
        assert all(ratio in line for ratio in ratios) == layout(FULL, width).beside
    assert line.count("█") == sum(min(round(5 * float(ratio)), 10) for ratio in ratios)  # of 10 cells, up to 2
    assert not any(row.saturation for row in table_rows(BARE))


def start_of(line: Line, role: str) -> int | None:
    """Return the cell where the first span of a role starts."""
    at = 0
    for text, each in line:
        if each == role:
            return at
        at += line_width(((text, each),))
    return None


def test_rows_are_in_catalogue_order_under_their_titles() -> None:
    for contents, width, instead in ((BARE, 58, False), (BARE, 94, False), (FULL, 80, True), (FULL, BESIDE, False)):
        head, *rows = drawn(contents, width, instead)
        for role in ("unscaled", "scaled", "theory"):
            starts = {start_of(line, role) for line in rows} - {None}
            if role == "theory":  # its title starts in the cell of the sign before its values
                starts = {at - 1 for at in starts if at is not None}
            expected = start_of(head, role)
            assert starts == (set() if expected is None else {expected}), (width, instead, role)
    labels = [text_of(line)[:LABEL].strip() for line in drawn(BARE, 80, False)]
    expected = ["logits"]
    shown = [each for each in STATISTICS if not each.conditional and not each.exported_only]
    for before, statistic in zip((shown[0], *shown), shown, strict=False):
        if statistic.group != before.group:
            expected.append(statistic.group)
        expected.append(statistic.short_label)
        expected += ["status"] if statistic.name == "logit_std" else []
    assert labels == expected
    assert not {
        "largest logit",
        "inside ±3σ",
        "ignored share",
        "first key / uniform",
        "p(1 − p)",
        "smallest logit",
    } & {*labels}


def test_every_label_fits_and_the_short_table_has_the_main_rows() -> None:
    assert all(len(glyphs.say(s.short_label)) < LABEL for s in STATISTICS for glyphs in (UNICODE, ASCII))
    rows = table_rows(BARE, ESSENTIAL)
    assert [row.statistic.name for row in rows if row.statistic] == list(ESSENTIAL)
    assert len(rows) == len(ESSENTIAL) + 1  # and the status


def test_theory_is_beside_measurements_if_it_fits() -> None:
    assert text_of(drawn(FULL, BESIDE, False)[0]).count("theory") == 2
    assert "theory" not in text_of(drawn(FULL, BESIDE - 1, False)[0])
    assert "theory" not in text_of(drawn(BARE, 200, True)[0])
    line = line_of("logit_variance", FULL, BESIDE)
    assert line.count("64.00") == 1
    assert line.count("1.000") == 1
    assert line.count("±") == 2


@for_each("width", [BESIDE, 140, 200])
@for_each("instead", [False, True])
def test_beside_rounded_numbers_theory_is_titled_exact(width: int, instead: bool) -> None:
    for at, word in ((width, "exact"), (200, "exact arithmetic")):
        title = text_of(drawn(FULL._replace(rounded=True), at, instead)[0])
        assert title.count(word) == 2
        assert "theory" not in title
        assert len(title) == at
    for rounded, word in ((True, "exact arithmetic"), (False, "theory")):
        printed = [str(each.header).strip() for each in rich_table(FULL._replace(rounded=rounded), UNICODE).columns]
        assert printed.count(word) == 2
    title = text_of(drawn(FULL._replace(rounded=True), 80, True)[0])
    assert title.count("exact") == 2
    assert "theory" not in title


def test_nan_rows_and_much_lost_weight_are_shown_on_any_screen() -> None:
    def names(**values: Estimate) -> list[str]:
        contents = TableContents((MEASURED.columns[0], *with_values(MEASURED.columns[1:], **values)))
        return [row.statistic.name for row in rows_for(contents, 5) if row.statistic]

    some = {name: Estimate(0.2, 0.01) for name in ("nan_rows", "weight_lost")}
    few = {name: Estimate(0.0005, 0.01) for name in ("nan_rows", "weight_lost")} | {"nan_rows": Estimate(0.0, 0.0)}
    assert {*names(**some)} == {*ESSENTIAL, "nan_rows", "weight_lost"}
    assert {*names(**few)} == {*ESSENTIAL}


def test_rows_fill_the_room_there_is() -> None:
    everything = table_rows(FULL)
    plain = len([row for row in everything if not row.is_heading])
    for room in range(len(ESSENTIAL) + 2, len(everything) + 1):
        found = rows_for(FULL, room)
        assert len(found) == (room if room in (*range(plain), len(everything)) else plain)


def test_theory_replaces_standard_errors_on_request_complete_and_with_its_sign() -> None:
    assert text_of(drawn(FULL, 80, True)[0]).count("theory") == 2
    line = line_of("logit_variance", FULL, 80, instead=True)
    assert "64.00" in line
    assert "±" not in line
    line = line_of("logit_excess_kurtosis", FULL, 58, instead=True)
    assert line.split()[-1] == "0.09375"
    assert line.count("0.09375") == 2
    asked = replace(ASKED, mean_q=10.0, mean_k=-10.0)
    measured, predicted = run(asked), predict(asked)
    contents = TableContents(measured.columns, predicted.columns, deviations(measured, predicted))
    assert "−6400" in line_of("logit_mean", contents, BESIDE)
    assert "−6400" in line_of("logit_mean", contents, 80, instead=True)


@pytest.mark.parametrize("instead", [False, True])
@pytest.mark.parametrize("width", [58, BESIDE])
def test_a_missing_value_is_a_dash_and_never_nan(width: int, instead: bool) -> None:
    alone = run(replace(ASKED, n_keys=1, std_q=0.0))
    predicted = predict(alone.subject)
    for contents in (BARE, TableContents(alone.columns, predicted.columns, deviations(alone, predicted))):
        text = "\n".join(text_of(line) for line in drawn(contents, width, instead))
        assert "nan" not in text.replace("NaN rows", "").lower()
        assert "inf" not in text.lower()
        assert "None" not in text
    nothing = with_values(alone.columns, entropy=Estimate(None, None))
    assert line_of("entropy", TableContents(nothing), 80).split() == ["entropy", "—", "—"]
    assert "—" in line_of("entropy_fraction", TableContents(alone.columns), 80)


def test_a_value_without_a_standard_error_has_no_plus_minus_and_a_missing_share_no_percent_sign() -> None:
    contents = TableContents(with_values(MEASURED.columns, entropy=Estimate(1.25, None)))
    assert line_of("entropy", contents, 80).split() == ["entropy", "1.250", "1.250"]
    column = with_values(MEASURED.columns, dead_rows=Estimate(None, None))[0]
    assert "%" not in "".join(measured_text(TableContents([column]), 0, STATISTIC["dead_rows"], UNICODE))


@for_each("statistic", STATISTICS)
def test_shares_and_nothing_else_are_percentages(statistic: Statistic) -> None:
    column = with_values(MEASURED.columns, **{statistic.name: Estimate(0.25, 0.01)})[0]
    value, rest = measured_text(TableContents([column]), 0, statistic, UNICODE)
    assert len(value + rest) == CELL
    assert (value.strip(), rest.split()) == (("25.00 %", ["±1.0"]) if statistic in SHARES else ("0.2500", ["±0.010"]))


@pytest.mark.parametrize(("width", "instead"), [(BESIDE, False), (200, False), (80, True)])
def test_a_value_far_from_theory_is_marked_and_named(width: int, instead: bool) -> None:
    columns = [MEASURED.columns[0], *with_values(MEASURED.columns[1:], entropy=Estimate(1.5, 0.05))]
    measured = replace(MEASURED, columns=tuple(columns), draws=64)
    wrong = TableContents(columns, PREDICTED.columns, deviations(measured, PREDICTED))
    marked = [line for line in drawn(wrong, width, instead) if any(span == ("!", "alert") for span in line)]
    assert [text_of(line).split()[0] for line in marked] == ["entropy"]
    assert text_of(marked[0]).index("!") > LABEL + CELL
    said = sentence(wrong, UNICODE)
    assert said.startswith("Differs from theory: scaled entropy by ")
    assert "Unscaled, one key" in said


def test_a_value_that_agrees_is_not_marked_and_a_deviation_without_error_is_described() -> None:
    assert not any("!" in text_of(line) for line in drawn(FULL, 200, False))
    assert "theory" not in sentence(FULL, UNICODE)
    wrong = TableContents(FULL.columns, FULL.theory, [{"entropy": math.inf}, {}])
    assert "!" in line_of("entropy", wrong, BESIDE)
    assert "nan" not in sentence(wrong, UNICODE)


def test_titles_name_the_rule_and_multiplier_in_the_longest_form_that_fits() -> None:
    column = MEASURED.columns[1]
    assert column_title(column, UNICODE, 34) == "scaled × 0.125 (1/√d_k)"
    assert column_title(column, UNICODE, 19) == "× 0.125 (1/√d_k)"
    assert column_title(column, UNICODE, 15) == "scaled × 0.125"
    assert column_title(column, ASCII, 34) == "scaled x 0.125 (1/sqrt(d_k))"
    assert column_title(MEASURED.columns[0], UNICODE) == "unscaled × 1"
    assert column_title(replace(column, rule="file"), UNICODE) == "from the file, × 0.125"
    assert column_title(replace(column, rule="custom", multiplier=2.5), UNICODE) == "scaled × 2.5"


@for_each("rule", ["sqrt_d_k", "d_k", "log_d_k", "two_sqrt_d_k", "custom", "file"])
@for_each("multiplier", [1.0, 0.125, 1 / 16_384, 1 / math.log(16_384), 1_000.0])
def test_titles_fit(rule: str, multiplier: float) -> None:
    columns = [MEASURED.columns[0], replace(MEASURED.columns[1], rule=rule, multiplier=multiplier)]
    contents = TableContents(columns, FULL.theory, FULL.deviations)
    for glyphs in (UNICODE, ASCII):
        for width in (58, 80, BESIDE, 118, 200):
            head = text_of(head_line(contents, layout(contents, width), glyphs, FIRST_GROUP))
            assert glyphs.say("unscaled × 1 ") in head
            titles = [column_title(columns[1], glyphs, room) for room in range(16, 35)]
            assert any(f"  {title} " in head + " " for title in titles)


@pytest.mark.parametrize("width", [58, 80])
def test_titles_fit_beside_theory_instead_of_standard_errors(width: int) -> None:
    head = text_of(drawn(FULL, width, True)[0])
    assert head.split() in (
        ["logits", "unscaled", "theory", "scaled", "theory"],
        ["logits", "unscaled", "theory", "×", "0.125", "theory"],
        ["logits", "×", "1", "theory", "×", "0.125", "theory"],
    )


@pytest.mark.parametrize("width", [40, 58, 80, 118, 200])
def test_the_status_of_each_column_is_beside_its_numbers(width: int) -> None:
    for contents in (BARE, FULL):
        (row,) = (row for row in table_rows(contents) if row.words)
        assert text_of(row_line(row, contents, layout(contents, width), UNICODE)).split() == [
            "status", "saturated", "healthy",
        ]  # fmt: skip


def test_the_status_is_that_of_the_law_where_theory_knows_it() -> None:
    """At d_k 10 the law of 128 keys is saturated, although rows measure a little less than their law's deviation."""
    edge = Parameters(d_k=10, n_keys=128, n_queries=32, batch=16)
    measured, exact = run(edge), predict(edge)
    ratio = present(measured.columns[0].measured["saturation"].value)
    assert ratio < 1
    for theory, word in (((), "saturating"), (exact.columns, "saturated")):
        (row,) = (row for row in table_rows(TableContents(measured.columns, theory)) if row.words)
        assert row.words[0] == word


def test_the_row_with_the_cursor_has_a_sign() -> None:
    row = next(row for row in table_rows(BARE) if row.statistic is STATISTIC["entropy"])
    shape = layout(BARE, 80)
    plain, marked = (row_line(row, BARE, shape, UNICODE, marked) for marked in (False, True))
    assert text_of(marked) == "▌" + text_of(plain)[1:]
    assert marked[0][1] == "accent"


@pytest.mark.parametrize("contents", [BARE, FULL])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_printed_table_equals_the_one_in_the_app(contents: TableContents, glyphs: Glyphs) -> None:
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(rich_table(contents, glyphs))
    printed = capture.get().splitlines()
    shown = texts_of(drawn(contents, BESIDE if contents is FULL else 80, False, glyphs))
    for on_paper, on_screen in zip(printed[1:], shown[1:], strict=True):
        if on_screen.startswith(" saturation  "):  # the app has a bar before the words, and more space for them
            assert "from d_k 6" in on_paper
            assert "from d_k 6" in on_screen
        else:
            assert on_paper.split() == on_screen.split()
    assert printed[0].split()[0] == "logits"


def test_the_first_view_says_the_same_of_an_answer_that_holds_only_its_statistics() -> None:
    for change in (
        {},
        {"sink": "logit", "sink_logit": 6.0},
        {"precision": "float16", "std_q": 90.0, "std_k": 90.0},
    ):
        p = replace(Parameters(d_k=16, n_keys=32, n_queries=8, batch=4, arithmetic="eager"), **change)
        *_, last = stream(p, statistics=OF_FIRST_VIEW)
        shown: list[tuple[object, ...]] = []
        for columns in (present(last.measurement()).columns, run(p, full=False).columns):
            contents = TableContents(columns)
            lines = page_lines(LabPage(p, contents, p.batch), 120, 40, UNICODE)
            shown.append((lines, sentence(contents, UNICODE)))
        assert shown[0] == shown[1], change
        incomplete = TableContents(present(last.measurement()).columns, full=False)
        for row in table_rows(incomplete):
            if row.statistic is not None:
                line = texts_of([row_line(row, incomplete, layout(incomplete, 80), UNICODE)])[0]
                assert ("…" in line[LABEL:]) == (row.statistic.name not in OF_FIRST_VIEW), line


@for_each(
    ("share", "text"),
    [(0.0, "none"), (0.2744, "27.44 %"), (0.00799, "0.799 %"), (1.0, "100.0 %"), (1e-9, "1.000e−7 %"), (None, "—")],
)
def test_the_percent_sign_is_beside_the_number_and_zero_is_none(share: float | None, text: str) -> None:
    assert aligned_share(share, UNICODE).strip() == text
    assert len(aligned_share(share, UNICODE)) == len(aligned(0.5, UNICODE))


SMALL = Parameters(d_k=4, n_keys=8, n_queries=4, batch=2)


@for_each("glyphs", [UNICODE, ASCII])
@for_each("room", [38, 55, 90])
def test_every_statistic_is_explained_in_the_room_there_is(room: int, glyphs: Glyphs) -> None:
    for statistic in STATISTICS:
        text = meaning(statistic, room, glyphs)
        assert len(text) <= room
        assert text or room < 50
        whole = (glyphs.say(statistic.definition), glyphs.say(statistic.formula))
        assert whole[0].startswith(text) or whole[1] == text


def test_a_definition_is_cut_where_a_clause_ends_never_inside_a_list() -> None:
    entropy, dead = STATISTIC["entropy"], STATISTIC["dead_rows"]
    assert meaning(entropy, 90, UNICODE) == "Entropy of a row of attention weights: 0 for one-hot, ln n for uniform"
    assert meaning(entropy, 69, UNICODE) == "Entropy of a row of attention weights"
    assert meaning(entropy, 20, UNICODE) == "H = −Σ p ln p"
    assert meaning(dead, 50, UNICODE) == "Share of rows whose Jacobian norm is below 0.01"


@pytest.mark.parametrize("width", [80, 100, 140, 165, 220])
def test_a_wide_table_explains_its_rows_and_a_narrow_one_keeps_its_width(width: int) -> None:
    contents = TableContents(run(SMALL).columns)
    lines = table_lines(table_rows(contents), contents, layout(contents, width), UNICODE)
    assert {line_width(line) for line in lines} == {width}
    explained = ["The largest attention weight of a row" in text_of(line) for line in lines]
    assert sum(explained) == (width >= 140)

"""Claims as lines and as files: every format has the same verdict, and says which figures match."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import get_args

import pytest
from attn_tui.core.learning.claim import UNCLAIMED, VERDICT_WORDS, Claim, ClaimFigure, Verdict, at_least, value
from attn_tui.core.learning.measure import examine
from attn_tui.core.learning.outcome import ClaimFinding, Outcome
from attn_tui.core.learning.sources import Reading
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.tables.learning import claims_table
from attn_tui.core.tables.table import written
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.results.claims import at_sign, claim_lines, claims_report, overview_lines
from cases import for_each
from line_texts import texts_of

RIGHT = ClaimFigure("a right figure", value(1_048_576), Reading(None, 1_048_576.0))
WRONG = ClaimFigure("a wrong figure", value(-0.25), Reading(Estimate(0.5004, 0.0123), 0.5))
OTHER = ClaimFigure("another figure", UNCLAIMED, Reading(Estimate(1.5e-7, None)))


def outcome_of(*figures: ClaimFigure) -> Outcome:
    return examine(Claim("made-up", "It is so.", "study note 000", "It just is.", figures=figures))


def with_verdict(verdict: Verdict) -> Outcome:
    return Outcome(Claim(verdict.replace(" ", "-"), "It is so.", "study note 000", "It is."), (), verdict, "Because.")


def text_of(outcome: Outcome, glyphs: Glyphs = UNICODE) -> list[str]:
    return texts_of(claim_lines(outcome.claim, outcome, 100, glyphs))


def test_a_figure_that_agrees_matches_and_another_is_off() -> None:
    lines = text_of(outcome_of(RIGHT, WRONG, OTHER))
    assert lines[lines.index("✓ matches a right figure") + 1].strip() == "claimed 1048576, exact 1048576"
    wrong = lines[lines.index("✗ off     a wrong figure") + 1].strip()
    assert wrong == "claimed −0.25, measured 0.5004 ± 0.012, exact 0.5"
    other = lines[lines.index("          another figure") + 1].strip()
    assert other == "for comparison: 1.5e−7"
    assert "1 of 2 figures is off: the claim says -0.25 for a wrong figure; it is 0.5." in lines


def test_a_table_has_a_row_for_each_figure_if_it_fits() -> None:
    outcome = outcome_of(RIGHT, WRONG, OTHER)
    lines = texts_of(claim_lines(outcome.claim, outcome, 80, UNICODE, tabular=True))
    head = next(at for at, line in enumerate(lines) if "claimed" in line and "measured" in line)
    right, wrong, other = (line.split() for line in lines[head + 1 : head + 4])
    assert right == ["✓", "a", "right", "figure", "1048576", "–", "1048576"]
    assert wrong == ["✗", "a", "wrong", "figure", "−0.25", "0.5004", "±", "0.012", "0.5"]
    assert other == ["another", "figure", "–", "1.5e−7", "–"]
    assert len({len(line) for line in lines[head : head + 4]}) == 1
    narrower = texts_of(claim_lines(outcome.claim, outcome, 40, UNICODE, tabular=True))
    at = next(at for at, line in enumerate(narrower) if "claimed" in line)
    titles, _, right, _, wrong = narrower[at : at + 5]  # each under the name of its figure
    assert narrower[at + 1] == "✓ a right figure"
    assert [line.split() for line in (right, wrong)] == [
        ["1048576", "–", "1048576"], ["−0.25", "0.5004", "±", "0.012", "0.5"],
    ]  # fmt: skip
    assert len(titles) == len(right) == len(wrong) <= 40
    narrowest = texts_of(claim_lines(outcome.claim, outcome, 30, UNICODE, tabular=True))
    assert any(line.startswith("✓ matches") for line in narrowest)
    assert all(len(line) <= 40 for line in narrower)


def test_ascii_and_files_say_which_figures_agree() -> None:
    lines = text_of(outcome_of(RIGHT, WRONG), ASCII)
    assert all(line.isascii() for line in lines)
    signs = [line.split()[1] for line in lines if line.endswith(("right figure", "wrong figure"))]
    assert signs == ["matches", "off"]
    outcome = outcome_of(RIGHT, WRONG)
    [claim] = json.loads(written(claims_table([outcome]), "json"))["claims"]
    assert [figure["agrees"] for figure in claim["figures"]] == [True, False]
    rows = [*csv.DictReader(io.StringIO(written(claims_table([outcome]), "csv")))]
    assert [row["agrees"] for row in rows] == ["true", "false"]
    assert [finding.agrees for finding in outcome.findings] == [True, False]


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_every_format_has_the_verdict(verdict: Verdict) -> None:
    outcome, word = with_verdict(verdict), VERDICT_WORDS[verdict]
    assert f"Verdict: {word}" in text_of(outcome)
    assert texts_of(claims_report([outcome], 80, UNICODE))[-1] == f"1 claims: 1 {word}"
    assert written(claims_table([outcome]), "markdown").splitlines()[2] == f"| {word} | It is so. | Because. |"
    assert json.loads(written(claims_table([outcome]), "json"))["claims"][0]["verdict"] == verdict
    [row] = csv.DictReader(io.StringIO(written(claims_table([outcome]), "csv")))
    assert row["verdict"] == verdict


def test_a_claim_that_depends_on_the_measure_has_both_figures() -> None:
    small = ClaimFigure("size", at_least(0, "more"), Reading(None, -0.0969), measure="size")
    fast = ClaimFigure("speed", at_least(0, "more"), Reading(None, 0.5), measure="speed")
    outcome = outcome_of(small, fast)
    assert outcome.verdict == "depends on the measure"
    assert (
        outcome.reason == "True by speed: 0.5 for speed. False by size: the claim says more for size; it is −0.0969."
    )
    assert outcome.findings == (
        ClaimFinding("size", "more", None, -0.0969, False), ClaimFinding("speed", "more", None, 0.5, True)
    )  # fmt: skip


def test_a_step_within_a_page_of_figures_moves_nothing_but_the_mark() -> None:
    outcomes = [outcome_of(RIGHT, WRONG, OTHER) for _ in range(10)]
    outcomes = [replace(each, claim=replace(each.claim, id=f"claim-{at}")) for at, each in enumerate(outcomes)]
    found = {each.claim.id: each for each in outcomes}
    pages = [texts_of(overview_lines(found, f"claim-{cursor}", 120, 2 + 10, UNICODE)) for cursor in range(10)]
    shown = [[row[1:] for row in page[2:]] for page in pages]
    assert [shown.index(page) for page in shown] == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9]
    for page in pages:
        assert sum(row.startswith(UNICODE.cursor) for row in page) == 3


@for_each("glyphs", [UNICODE, ASCII])
@for_each("cursor", [0, 4, 9])
def test_the_figures_of_all_claims_are_one_table_around_the_selected_claim(glyphs: Glyphs, cursor: int) -> None:
    outcomes = [outcome_of(RIGHT, WRONG, OTHER) for _ in range(10)]
    outcomes = [
        replace(outcome, claim=replace(outcome.claim, id=f"claim-{at}", title=f"title {at}"))
        for at, outcome in enumerate(outcomes)
    ]
    found = {outcome.claim.id: outcome for outcome in outcomes}
    head, titles, *rows = texts_of(overview_lines(found, f"claim-{cursor}", 120, 14, glyphs))
    assert head.split() == ["all", "figures", "10", "claims:", "10", "false"]
    assert titles.split() == ["claim", "figure", "claimed", "measured", "exact"]
    assert len(rows) == 12
    marked = [row for row in rows if row.startswith(glyphs.cursor)]
    assert [" ".join(row[1:].split()) for row in marked] == [
        glyphs.say(f"title {cursor} ✓ a right figure 1048576 – 1048576"),
        glyphs.say("✗ a wrong figure −0.25 0.5004 ± 0.012 0.5"),
        glyphs.say("another figure – 1.5e−7 –"),
    ]
    assert overview_lines({}, "claim-0", 120, 14, glyphs) == []


def test_a_long_name_of_a_figure_takes_the_room_of_a_short_claimed_value() -> None:
    long = "a figure whose name is longer than its column, which is 71 cells, and is whole"
    wordy = ClaimFigure("short", value(0, words="nearly everywhere"), Reading(None, 0.0))
    named = ClaimFigure(long, value(0), Reading(None, 0.0))
    outcome = outcome_of(named, wordy)
    found = {outcome.claim.id: outcome}
    page = texts_of(overview_lines(found, outcome.claim.id, 120, 14, UNICODE))
    assert long in page[2]
    end = page[3].index("rywhere  ") + len("rywhere")
    assert page[2][end - 2 : end + 2] == " 0  ", "claimed values end in one column"
    assert len(page[2]) == len(page[3]) == 120


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_measured_values_have_their_errors_in_one_column(glyphs: Glyphs) -> None:
    rows = [("", "a", "1", found, "2") for found in ("63.43 ± 0.34", "−0.0002568 ± 0.00033", "–", "0 ± 0")]
    said = [(*row[:3], glyphs.say(row[3]), row[4]) for row in rows]
    measured = [row[3] for row in at_sign(said, glyphs)]
    wide = max(map(len, measured))
    sign = glyphs.say("±")
    assert len({found.rjust(wide).index(sign) for found in measured if sign in found}) == 1
    assert measured[2].rjust(wide).index(glyphs.say("–")) == measured[0].rjust(wide).index(sign) - 2
    assert at_sign([("", "a", "1", "2", "3")], glyphs) == [("", "a", "1", "2", "3")]

"""The Rules pane: rules side by side, sorted, explained, and opened in the Lab."""

import json
from dataclasses import replace

import pytest
from attn_tui.core.lab.results import RULES, SORTABLE, Order, listed_rules
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.views.results.rules import COLUMNS, by_family, words_of
from stage import SIZES, SMALL, Stage, played

pytestmark = pytest.mark.usefixtures("short_rule_grids")

LISTED = listed_rules(Parameters())  # without the custom rule, which is not set
NAMES = by_family(LISTED)


@played(size=(120, 52))
async def test_every_rule_has_a_row_with_what_the_lab_measures(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    expected = {row.rule: row for done in run_parts(row_parts(SMALL)) for row in results_of(done)}
    for name, row in pane.rows.items():
        for column in SORTABLE:
            assert row.value(column) == pytest.approx(expected[name].value(column))
    lines = stage.part(pane.table)
    assert sum(any(rule.label in line[:17] for rule in SCALE_RULES.values()) for line in lines) == len(LISTED)
    (lab,) = (line for line in lines if line.startswith("▌◆"))
    assert lab[2:].startswith("1/√d_k ")
    assert "Vaswani" in stage.words(pane.words)
    assert f"{100 * (pane.rows['sqrt_d_k'].value('entropy_fraction') or 0):.2f}" in lab


@played(replace(SMALL, d_k=1))
async def test_keys_sort_the_rows_and_reverse_them(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    for column in SORTABLE[1:]:
        await stage.press("O")
        assert pane.order == Order(column)
        assert list(pane.table.shown.names) == [
            row.rule for row in Order(column).of(map(pane.rows.__getitem__, LISTED))
        ]
        head = pane.table.region.y
        assert words_of(column) in stage.lines[head]
        assert "▼" in stage.lines[head + 1]
        await stage.press("I")
        expected = Order(column, reverse=True)
        assert list(pane.table.shown.names) == [row.rule for row in expected.of(map(pane.rows.__getitem__, LISTED))]
        assert "▲" in stage.lines[head + 1]
        assert pane.cursor == "sqrt_d_k"
    await stage.press("O")
    assert list(pane.table.shown.names) == NAMES


@played(size=(80, 24))
async def test_the_cursor_moves_over_the_rows_and_explains_each(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    for keys, name in (
        (["home"], NAMES[0]),
        (["down", "j"], NAMES[2]),
        (["k", "up", "up"], NAMES[0]),
        (["pagedown"], NAMES[10]),
        (["end", "down"], NAMES[-1]),
        (["pageup"], NAMES[-11]),
    ):
        await stage.press(*keys)
        assert pane.cursor == name
        assert stage.lines[pane.words.region.y].startswith(f"── {SCALE_RULES[name].formula} ")
        assert any(line.startswith("▌") and SCALE_RULES[name].label in line for line in stage.part(pane.table))


@played()
async def test_enter_opens_the_lab_with_the_rule(stage: Stage) -> None:
    await stage.complete(RulesPane)
    await stage.press("down", "right", "enter")
    assert stage.app.active == "Lab"
    assert stage.asked == replace(SMALL, d_k=65, scale=RULES[2])
    await stage.settled()
    pane = await stage.complete(RulesPane)
    assert any(line.startswith("▌◆1/d_k ") for line in stage.part(pane.table))


@played(replace(SMALL, d_k=1))
async def test_a_rule_without_a_value_does_not_go_to_the_lab(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    await stage.press("down", "down", "enter")
    assert pane.cursor == "log_d_k"
    assert stage.app.active == "Rules"
    assert "The Lab cannot show this rule: 1/ln d_k has no value at" in stage.words(pane.words)
    assert any("1/ln d_k       has no value at" in line for line in stage.part(pane.table))
    await stage.press("up")
    assert "The Lab cannot show" not in stage.words(pane.words)


@played()
async def test_rows_are_dimmed_while_a_typed_d_k_is_refused(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    await stage.press("9", "9", "9", "9", "9", "9", "9")
    assert pane.refusal
    assert {*pane.table.shown.stale} == {*LISTED}
    await stage.press("escape")
    await stage.known(pane)
    assert not pane.table.shown.stale


@played()
async def test_m_shows_mechanisms_and_their_bounds(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    await stage.press("m")
    await stage.until(lambda: "±‖v‖₁" in stage.text)
    assert pane.file_name == "mechanisms"
    assert not pane.table.display
    assert "bound of |score|" in stage.text
    await stage.press("down", "enter")
    assert stage.app.active == "Rules"
    await stage.press("m")
    assert pane.table.display
    assert pane.file_name == "rules-d64"


@played(size=(80, 24))
async def test_v_shows_the_next_view_of_the_tab(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    await stage.press("v")
    assert stage.app.view == ("Sweep", "curves")
    assert pane.view == "rules"


@played(size=(120, 40))
async def test_large_digits_show_d_k_while_it_is_typed(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    assert (pane.headline.number, pane.headline.role) == ("64", "heading")
    await stage.press("9", "6")
    assert (pane.headline.number, pane.headline.role) == ("96_", "accent")
    assert "d_k" not in stage.lines[0], "the top bar has nothing that moves"
    await stage.press("0", "0", "0", "0")
    assert pane.headline.role == "alert"
    await stage.press("escape")
    await stage.known(pane)
    assert pane.headline.number == "64"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES[:2], ids=str)
@played()
async def test_all_columns_and_rows_can_be_reached(stage: Stage, size: tuple[int, int]) -> None:
    pane = await stage.complete(RulesPane)
    titles = {"multiplier", "status", "std", "/ ln n %", "weight %", "∂L/∂q", "rows %", "saturation", "flow %"}
    titles |= {"at d_k", "uniform"}
    assert len(titles) == len(COLUMNS)
    at = pane.table.region.y + 2
    seen = {title for title in titles if title in stage.lines[at]}
    assert ("i: " in stage.lines[at - 2]) == (seen != titles)
    for _ in COLUMNS:
        await stage.press("i")
        seen |= {title for title in titles if title in stage.lines[at]}
    assert seen == titles
    names: set[str] = set()
    for key in ("home", "pagedown", "pagedown", "pagedown", "end"):
        await stage.press(key)
        lines = stage.lines
        names |= {name for name in RULES if any(SCALE_RULES[name].label in line[:17] for line in lines)}
    assert names == {*LISTED}
    assert any(f"more {where}" in stage.text for where in ("above", "below"))


@played()
async def test_the_custom_rule_is_a_row_once_it_is_set(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    assert "custom" not in stage.text
    assert json.loads(pane.numbers("json"))["rules"][-1]["rule"] == "custom", "all rules are exported"
    stage.app.change(replace(SMALL, scale="custom", multiplier=0.3))
    await stage.known(pane)
    await stage.press("end")
    assert any(line.startswith("▌◆custom") for line in stage.part(pane.table))
    stage.app.change(replace(SMALL, multiplier=0.3))
    await stage.known(pane)
    assert any(line.startswith("▌ custom") and "0.3000" in line for line in stage.part(pane.table))
    await stage.press("R")
    await stage.known(pane)
    assert "custom" not in stage.text
    assert pane.cursor == "sqrt_d_k"

"""A formula as the scale: typed in the Lab, read from settings, and compared in Rules."""

from dataclasses import replace
from pathlib import Path

import pytest
from attn_tui.core.lab.results import RULES, listed_rules
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.settings.store import load, save
from attn_tui.tui.views.fields.entry import entered, typed
from attn_tui.tui.views.results.rules import by_family
from attn_tui.tui.widgets.picker import ListText
from stage import SMALL, Stage, played

FORMULA = "log(n)/sqrt(d)"
PARAMETERS = replace(SMALL, scale=FORMULA)


def test_a_typed_formula_is_the_scale_and_a_faulty_one_refused_at_its_character() -> None:
    field = FIELD["scale"]
    assert entered(field, f" {FORMULA} ") == FORMULA
    assert entered(field, "max(1/d, 0.1)") == "max(1/d, 0.1)"
    assert entered(field, "d") == "d_k"
    assert entered(field, "ssm") == "ssmax"
    entry = typed(None, Parameters(), field, "log(n)/", Parameters.with_value)
    assert entry.value == Parameters()
    assert entry.objection == "scale: character 8 of 'log(n)/': the formula ends too early"
    entry = typed(None, Parameters(), field, "d" * 100, Parameters.with_value)
    assert "at most 80 characters" in (entry.objection or "")


def test_settings_keep_a_formula_and_report_a_faulty_one(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    save(file, {"parameters": {"scale": FORMULA}})
    assert load(file, {}).parameters == {"scale": FORMULA}
    assert load(None, {"ATTN_TUI_SCALE": FORMULA}).parameters == {"scale": FORMULA}
    file.write_text('[parameters]\nscale = "log(n)/sqr(d)"\n')
    (problem,) = load(file, {}).problems
    assert "parameters.scale: character 8 of 'log(n)/sqr(d)': unknown name sqr" in problem


@pytest.mark.slow
@pytest.mark.usefixtures("short_rule_grids")
@played(PARAMETERS)
async def test_rules_have_a_row_for_the_formula_that_goes_with_it(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    assert [*pane.table.shown.names] == by_family(listed_rules(PARAMETERS))
    await stage.press("end")
    for _ in listed_rules(PARAMETERS):
        if pane.cursor != FORMULA:
            await stage.press("up")
    assert pane.cursor == FORMULA
    assert "the formula you set" in stage.words(pane.words)
    assert pane.rows[FORMULA].multiplier == pytest.approx(2.772588722 / 8)
    assert FORMULA in pane.numbers("json")
    await stage.press("S")
    await stage.known(pane)
    assert [*pane.table.shown.names] == by_family(listed_rules(replace(PARAMETERS, scale="sqrt_d_k")))
    assert pane.cursor == RULES[0]
    assert FORMULA not in pane.numbers("json")


@played(size=(80, 24))
async def test_the_list_of_rules_names_every_function_of_a_formula(stage: Stage) -> None:
    await stage.press("/", *FORMULA)
    shown = " ".join(" ".join(stage.part(stage.app.screen.query_one(ListText))).split())
    assert "and log, log2, sqrt, exp, min, max." in shown


@pytest.mark.usefixtures("short_rule_grids")
@played(SMALL, size=(80, 24))
async def test_a_formula_typed_into_the_list_of_rules_is_measured(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    await stage.press("/", *FORMULA)
    await stage.press("enter")
    await stage.known(pane)
    assert pane.cursor == FORMULA
    assert {"entropy", "max_weight"} <= {*pane.rows[FORMULA].measured}
    assert pane.progress is None
    assert not pane.is_stale

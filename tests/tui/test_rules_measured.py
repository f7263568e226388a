"""What the Rules pane measures, and which rows it shows in the meantime."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from attn_tui.core.errors import NO_MEMORY
from attn_tui.core.lab import mechanisms, rules
from attn_tui.core.lab.results import RULES, RuleRow
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions import request
from attn_tui.core.questions.rules import CompareRules
from attn_tui.core.theory.predict import predict
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from attn_tui.tui.panes.rules import requests
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.panes.rules.requests import MeasureRules, RuleRows
from stage import SMALL, Stage, played, refusal, succeeds

pytestmark = pytest.mark.usefixtures("short_rule_grids")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report progress from the start, and send each row as soon as it is measured."""
    monkeypatch.setattr(requests, "_SLOW", -1.0)
    monkeypatch.setattr(request, "BATCH_INTERVAL", -1.0)


def measured(p: Parameters) -> dict[str, RuleRow]:
    return {row.rule: row for done in run_parts(row_parts(p)) for row in results_of(done)}


async def shown(stage: Stage, pane: RulesPane, asked: Parameters) -> None:
    """Wait for all results, and check that they are current and for these parameters."""
    await stage.known(pane)
    for name, row in measured(asked).items():
        assert pane.rows[name].value("max_weight") == pytest.approx(row.value("max_weight"), rel=1e-5)
    assert not pane.table.shown.stale
    assert pane.progress is None


@played(hold=True)
async def test_before_anything_is_measured_there_are_no_numbers(stage: Stage) -> None:
    pane, engine = await stage.opened(RulesPane), stage.engine
    await stage.until(lambda: engine.at_rest)
    assert f"0 of {len(RULES)}" in refusal(lambda: pane.numbers("json"))
    engine.hand_on(engine.held_for(MeasureRules))
    await stage.until(lambda: len(pane.rows) == len(RULES))
    assert "still being measured" in refusal(lambda: pane.numbers("json"))


@pytest.mark.usefixtures("slow")
@played(replace(SMALL, d_k=64, batch=4))
async def test_exact_rows_come_first_and_rows_keep_their_places_dimmed_until_measured(stage: Stage) -> None:
    pane, engine = await stage.complete(RulesPane), stage.engine
    await stage.press("O", "O")
    before = list(pane.table.shown.names)
    engine.hold = True
    await stage.press("L", "L", "L")
    await stage.until(lambda: engine.at_rest)
    assert f"0 of {len(RULES)}" in refusal(lambda: pane.numbers("json"))
    exact, first, *_ = (reply for reply in engine.held_for(MeasureRules) if isinstance(reply.content, RuleRows))
    engine.hand_on(engine.held[: engine.held.index(exact) + 1])
    theory = predict(stage.asked).columns[1].values["max_weight"]
    await stage.until(lambda: pane.rows["sqrt_d_k"].value("max_weight") == theory, "what theory knows")
    assert {*pane.table.shown.stale} == {*before}
    engine.hand_on(engine.held[: engine.held.index(first) + 1])
    await stage.until(lambda: 0 < len(pane.table.shown.stale) < len(before), "a first part")
    assert pane.table.shown.names == before
    engine.let_go()
    await stage.known(pane)
    assert not pane.table.shown.stale
    assert pane.table.shown.names == [
        row.rule for row in pane.order.of(map(measured(stage.asked).__getitem__, before))
    ]
    assert pane.table.shown.names != before


@pytest.mark.usefixtures("slow")
@played()
async def test_under_a_held_key_rows_of_earlier_parameters_are_shown(stage: Stage) -> None:
    pane, engine = await stage.complete(RulesPane), stage.engine
    engine.hold = True
    await stage.press("L")
    await stage.until(lambda: engine.at_rest)
    earlier, replies = measured(stage.asked)["sqrt_d_k"].value("max_weight"), engine.held_for(MeasureRules)
    await stage.press("L")
    engine.hand_on(replies)
    await stage.until(lambda: pane.rows["sqrt_d_k"].value("max_weight") == pytest.approx(earlier, rel=1e-5))
    engine.let_go()
    await shown(stage, pane, stage.asked)


@pytest.mark.slow
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("early", [0, 1, 2], ids=["nothing", "progress", "rows"])
@played()
async def test_after_going_back_the_rows_of_the_parameters_are_shown(stage: Stage, early: int) -> None:
    """The first `early` replies for the other parameters arrive before the key that goes back, the rest after it."""
    pane, engine = await stage.complete(RulesPane), stage.engine
    engine.hold = True
    await stage.press("L")
    await stage.until(lambda: engine.at_rest)
    engine.hand_on(engine.held_for(MeasureRules)[:early])
    await stage.answered()
    await stage.press("H")
    engine.let_go()
    await stage.at_rest()
    await shown(stage, pane, SMALL)


@played()
async def test_a_hidden_pane_measures_nothing(stage: Stage) -> None:
    def asked() -> list[int]:
        found = (each.request for each in stage.engine.asked)
        return [request.parameters.d_k for request in found if isinstance(request, MeasureRules)]

    await stage.complete(RulesPane)
    stage.app.action_pane("Lab")
    await stage.press("right", "right")
    await stage.settled()
    assert asked() == [64]
    await stage.press("S")  # the rule makes no difference to the rows
    await stage.complete(RulesPane)
    stage.app.action_pane("Lab")
    await stage.complete(RulesPane)
    assert asked() == [64, 66]


@played()
async def test_mechanisms_are_dimmed_while_others_are_measured(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "BATCH_INTERVAL", -1.0)  # send each row separately
    pane, engine = await stage.complete(RulesPane), stage.engine
    engine.hold = True
    await stage.press("m")
    assert "Measuring mechanisms" in stage.text
    engine.let_go()
    await stage.known(pane)
    before = stage.part(pane.mechanisms)
    await stage.press("L")  # d_k makes no difference
    assert succeeds(lambda: pane.numbers("json"))
    engine.hold = True
    await stage.press("]")
    await stage.until(lambda: engine.at_rest)
    engine.hand_on(engine.held_for(CompareRules)[:1])
    await stage.until(lambda: pane.mechanisms.dimmed)
    assert "still being measured" in refusal(lambda: pane.numbers("json"))
    engine.let_go()
    await stage.known(pane)
    assert not pane.mechanisms.dimmed
    assert stage.part(pane.mechanisms) != before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "keys", "stays"),
    [(rules, "]", "multiplier"), (mechanisms, "m]", "bound of |score|"), (mechanisms, "]m", "")],
    ids=["rules", "other mechanisms", "mechanisms"],
)
@played()
async def test_a_failure_is_explained_until_the_parameters_change(
    stage: Stage, module: ModuleType, keys: str, stays: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.measure

    def measure(p: Parameters, *others: Any) -> Iterator[Any]:
        if p.n_keys == 32:
            raise MemoryError
        return real(p, *others)

    monkeypatch.setattr(module, "measure", measure)
    pane = await stage.complete(RulesPane)
    await stage.press(*keys)
    await stage.at_rest()  # the curves come after the failure of the rules
    assert NO_MEMORY in stage.text
    assert "Measuring" not in stage.text
    assert stays in stage.text
    await stage.press("[")
    assert NO_MEMORY not in stage.text
    await stage.known(pane)

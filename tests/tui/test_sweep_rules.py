"""The Sweep pane over keys, and with curves of several scale rules."""

from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.theory.predict import predict
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.sweep.requests import GridRange
from attn_tui.tui.widgets.picker import ChoiceScreen
from cases import present
from stage import SMALL, Stage, played

GRIDS = (GridRange("2:64:log4,64"), GridRange("2:64:log6", "n_keys"))


@pytest.fixture(autouse=True)
def short_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the grids by short ones."""
    for module in ("parts", "pane"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{module}.GRIDS", GRIDS)


async def shown(stage: Stage, *keys: str) -> SweepPane:
    """Open the pane, press keys, and wait until it shows all its results."""
    pane = await stage.complete(SweepPane)
    await stage.press(*keys)
    await stage.known(pane)
    await stage.at_rest()
    return pane


def readings(stage: Stage, pane: SweepPane, count: int) -> list[str]:
    return stage.part(pane.plot)[:count]


@played()
async def test_g_leads_to_a_sweep_over_keys_whose_points_are_those_of_the_lab(stage: Stage) -> None:
    pane = await shown(stage, "G")
    assert "over keys" in stage.lines[pane.plot.region.y]
    assert [*pane.curves.swept.points] == [2, 4, 8, 16, 32, 64]
    for n, found in pane.curves.swept.points.items():
        alone, exact = run(replace(SMALL, n_keys=n)), predict(replace(SMALL, n_keys=n))
        for index, column in enumerate(found.point.measurement.columns):
            expected = alone.columns[index].measured["entropy"].value
            assert column.measured["entropy"].value == pytest.approx(expected, rel=1e-4, abs=1e-6)
            assert found.prediction.columns[index].values == exact.columns[index].values
    await stage.press("v")
    rows = [row for row in stage.part(pane.table)[1:] if row.strip()]
    assert [int(row.lstrip("▌").split()[0]) for row in rows] == [2, 4, 8, 16, 32, 64]


@pytest.mark.slow
@played()
async def test_over_keys_arrows_digits_and_clicks_set_the_number_of_keys(stage: Stage) -> None:
    pane = await shown(stage, "G")
    assert stage.lines[-1].startswith(" ←→ ↑↓ keys ")
    for key, n in (("right", 17), ("up", 32), ("down", 16), ("left", 15)):
        await stage.press(key)
        assert stage.asked == replace(SMALL, n_keys=n)
        assert pane.plot.cursor == n
    await stage.press("3", "2")
    assert pane.headline.number == "32_"
    await stage.press("enter")
    assert stage.asked == replace(SMALL, n_keys=32)
    await stage.known(pane)
    labels = stage.part(pane.plot)[-1]
    await stage.click((labels.index(" 4 ") + 1, 9), pane.plot)
    assert 3 <= stage.asked.n_keys <= 5
    await stage.press("u", "u")
    assert stage.asked.n_keys == 15


@pytest.mark.slow
@played(replace(SMALL, d_k=8, n_keys=32))
async def test_over_keys_a_mark_shows_where_softmax_thaws(stage: Stage) -> None:
    """Logits of standard deviation √8 saturate fewer than e⁴ = 55 keys."""
    pane = await shown(stage, "G")
    assert "unscaled softmax recovers" in "\n".join(stage.part(pane.plot))
    upright = next(line.index("┊") for line in stage.part(pane.plot) if "┊" in line)
    labels = stage.part(pane.plot)[-1]
    assert labels.index("32") < upright < labels.index("64")


@played(size=(120, 40))
async def test_curves_of_chosen_rules_have_letters_and_lines_of_their_own(stage: Stage) -> None:
    pane = await shown(stage)
    await stage.press("i")
    assert isinstance(stage.app.screen, ChoiceScreen)
    assert "Tab mark" in stage.text
    await stage.press("down", "tab", "down", "space")
    assert stage.text.count("[✓]") == 2
    assert pane.curves.rules == ()
    await stage.press("enter")
    await stage.known(pane)
    await stage.at_rest()
    assert pane.curves.rules == ("d_k", "log_d_k")
    lines = readings(stage, pane, 2)
    for line, letter, rule in zip(lines, "CD", pane.curves.rules, strict=True):
        expected = present(run(replace(SMALL, scale=rule)).columns[1].measured["entropy"].value)
        assert letter in line
        assert f" {expected:.3f} " in line or f" {expected:.2f}" in line
    text = "\n".join(stage.part(pane.plot)[4:])
    assert text.count("C") + text.count("◈") >= 4
    assert text.count("D") + text.count("◈") >= 4
    assert "--vary scale=sqrt_d_k,d_k,log_d_k" in pane.command()
    await stage.press("right")
    await stage.at_rest()
    expected = run(replace(SMALL, d_k=65, scale="d_k")).columns[1].measured["entropy"].value
    assert f"{expected:.3f}" in readings(stage, pane, 2)[0]
    await stage.press("u", "u")
    assert pane.curves.rules == ()
    assert "--vary" not in pane.command()


@pytest.mark.slow
@played(size=(120, 40))
async def test_enter_alone_adds_the_row_and_escape_changes_nothing(stage: Stage) -> None:
    pane = await shown(stage)
    await stage.press("i", *"deberta", "enter")
    assert pane.curves.rules == ("sqrt_three_d_k",)
    await stage.press("i", "tab", "escape")
    assert pane.curves.rules == ("sqrt_three_d_k",)
    await stage.press("i", "enter")
    assert pane.curves.rules == ()
    await stage.press("i", *["tab", "down"] * 8, "enter")
    assert len(pane.curves.rules) == 6
    assert "at most 6 rules" in stage.text
    await stage.known(pane)
    for size in [(40, 12), (80, 24), (200, 60)]:
        await stage.resize(*size)
        assert all(len(line) == size[0] for line in stage.lines)


@played()
async def test_rules_stay_while_b_changes_and_b_is_not_drawn_twice(stage: Stage) -> None:
    pane = await shown(stage)
    pane.curves.show_rules(("d_k", "log_d_k"))
    await stage.press("S")
    assert stage.asked.scale == "d_k"
    await stage.known(pane)
    assert [other.swept.parameters.scale for other in pane.curves.others] == ["log_d_k"]
    assert "--vary scale=d_k,log_d_k" in pane.command()


@played(size=(120, 40))
async def test_the_rule_of_b_takes_no_place_among_the_rules_beside_it(stage: Stage) -> None:
    pane = await shown(stage)
    await stage.press("i", *["tab", "down"] * 7, "enter")  # the first one is B's
    assert pane.parameters.scale not in pane.curves.rules
    assert len(pane.curves.rules) == 6
    assert "at most 6 rules" not in stage.text

"""The Sweep pane: curves over d_k with a cursor, which sets the Lab's d_k."""

import re
from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.models import landmarks
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTIC, Statistic
from attn_tui.core.theory.predict import predict
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.sweep.requests import GRIDS
from stage import SMALL, Stage, played

SHORT = "1:64:log6,16,32,64"  # a grid that is quick


@pytest.fixture(autouse=True)
def short_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the first grid by a short one, so that tests are quick."""
    for module in ("parts", "pane"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{module}.GRIDS", (replace(GRIDS[0], text=SHORT), *GRIDS[1:]))


async def shown(stage: Stage) -> SweepPane:
    """Open the pane and wait until it shows all its results."""
    pane = await stage.complete(SweepPane)
    await stage.at_rest()
    return pane


def plotted(stage: Stage, pane: SweepPane) -> str:
    return "\n".join(stage.part(pane.plot)[2:-2])


@played()
async def test_every_point_is_measured_beside_its_exact_value(stage: Stage) -> None:
    pane = await shown(stage)
    for d_k in pane.curves.swept.values:
        found = pane.curves.swept.points[d_k]
        alone, exact = run(replace(SMALL, d_k=d_k)), predict(replace(SMALL, d_k=d_k))
        for index, column in enumerate(found.point.measurement.columns):
            expected = alone.columns[index].measured["entropy"].value
            assert column.measured["entropy"].value == pytest.approx(expected, rel=1e-4)
            assert found.prediction.columns[index].values == exact.columns[index].values
    text = plotted(stage, pane)
    assert text.count("◈") + text.count("●") >= 6
    assert text.count("◈") + text.count("◆") >= 6
    assert any(0x2800 < ord(sign) < 0x2900 for sign in text)


@played(settled=True)
async def test_the_values_at_the_cursor_are_those_of_the_lab(stage: Stage) -> None:
    await shown(stage)
    await stage.press("right")
    pane = await shown(stage)
    unscaled, scaled = stage.part(pane.headline)[-3:-1]
    expected = run(replace(SMALL, d_k=65))
    for line, column in zip((unscaled, scaled), expected.columns, strict=True):
        measured, found = column.measured["entropy"].value, [float(n) for n in re.findall(r"\d+\.\d{2,}", line)]
        assert measured is not None
        assert any(number == pytest.approx(measured, rel=2e-3) for number in found)
    assert pane.headline.number == "65"
    assert "unscaled × 1" in unscaled
    assert "scaled × 0.124" in scaled


@played()
async def test_keys_in_a_burst_each_start_from_the_one_before(stage: Stage) -> None:
    pane = await shown(stage)
    stage.send(*["right"] * 40, *["up"] * 2, "S", *["left"] * 7, "]")
    await stage.until(lambda: stage.asked.n_keys == 32, "the last key")
    assert stage.asked == replace(SMALL, d_k=249, scale=stage.asked.scale, n_keys=32)
    assert (stage.asked.scale != SMALL.scale, pane.plot.cursor) == (True, 249)
    await stage.known(pane)


def title_of(stage: Stage, pane: SweepPane) -> str:
    """Return the upper border of the plot."""
    return stage.lines[pane.plot.region.y]


@played()
async def test_shift_m_goes_through_all_statistics(stage: Stage) -> None:
    pane = await shown(stage)
    seen: list[Statistic] = []
    for _ in ALWAYS:
        seen.append(pane.plot.statistic)
        assert title_of(stage, pane).startswith(f"── {pane.plot.statistic.label} ")
        assert pane.plot.statistic.definition.split()[0] in stage.words(pane.words)
        await stage.press("M")
    assert set(seen) == set(ALWAYS)
    assert pane.plot.statistic is seen[0] is STATISTIC["entropy"]


@played()
async def test_z_switches_between_a_logarithmic_and_a_linear_axis(stage: Stage) -> None:
    pane = await shown(stage)
    pane.plot.statistic = STATISTIC["logit_variance"]
    await stage.press("z")
    assert "log axis" not in title_of(stage, pane)
    await stage.press("z")
    assert "log axis" in title_of(stage, pane)
    labels = [line.split("┤")[0].strip() for line in stage.part(pane.plot)[3:-2]]
    assert {"1", "10"} <= set(labels)


@played()
async def test_the_table_has_a_row_for_each_landmark_and_marks_the_cursor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("parts", "pane"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{module}.GRIDS", GRIDS)
    pane = await shown(stage)
    await stage.press("v")
    rows, d_ks = [row for row in stage.part(pane.table)[1:] if row.strip()], landmarks(pane.curves.swept.values)
    assert [int(row.lstrip("▌").split()[0]) for row in rows] == [*d_ks]
    assert [row.startswith("▌") for row in rows].index(True) == d_ks.index(64)
    assert all(set(row) & set("▁▂▃▄▅▆▇") for row in rows)
    await stage.press("right")
    assert not any(row.startswith("▌") for row in stage.part(pane.table))


@played()
async def test_v_shows_the_plot_the_table_and_the_map(stage: Stage) -> None:
    pane = await shown(stage)
    views: list[tuple[bool, bool]] = []
    for _ in range(3):
        views.append((pane.plot.display, pane.table.display))
        await stage.press("v")
    assert stage.app.view == ("Rules", "rules"), "after the map, the next view of the tab"
    assert views == [(True, False), (False, True), (False, False)], "the last is the map"


@played(replace(SMALL, d_k=1))
async def test_a_d_k_at_which_the_rule_has_no_value_is_explained_and_left_out(stage: Stage) -> None:
    pane = await shown(stage)
    while pane.parameters.scale != "log_d_k":
        await stage.press("S")
    assert "scale 1/ln d_k has no value" in stage.words(pane.words)
    await stage.until(lambda: pane.is_current and pane.curves.swept.complete)
    assert pane.curves.swept.values[0] == 2
    await stage.press("right")
    await stage.known(pane)
    assert "has no value" not in stage.words(pane.words)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [(replace(SMALL, d_k=100), "d_k 100 is outside"), (replace(SMALL, components="uniform"), "No exact value")],
    ids=["outside", "no exact value"],
)
@played()
async def test_what_the_plot_cannot_show_is_explained(stage: Stage, parameters: Parameters, says: str) -> None:
    pane, outside = await shown(stage), parameters.d_k == 100
    assert says in stage.words(pane.words)
    first, last = pane.curves.swept.values[0], pane.curves.swept.values[-1]
    for d_k in (first, last, last + 1):
        stage.app.change(replace(pane.parameters, d_k=d_k))
        await stage.still()
        assert ("is outside" in stage.words(pane.words)) == (d_k > last)
    stage.app.change(parameters)
    await stage.still()
    assert ("▸" in stage.part(pane.plot)[-2]) == outside
    assert any(0x2800 < ord(sign) < 0x2900 for sign in plotted(stage, pane)) == outside


@played()
async def test_a_click_moves_the_cursor_there(stage: Stage) -> None:
    pane = await shown(stage)
    labels = stage.part(pane.plot)[-1]
    await stage.click((labels.index("16"), 9), pane.plot)
    assert 14 <= pane.parameters.d_k <= 18
    assert stage.asked.d_k == pane.parameters.d_k
    for pane.plot.headed in (True, False):  # also below the values at the cursor, the plot ends at its bottom
        assert len(pane.plot.compose_lines(80, 20)) == 20

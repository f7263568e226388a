"""The map in the Sweep pane: reached with v, walked with arrows, exact or measured."""

from dataclasses import replace

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.tui.panes.sweep.map_view import D_KS
from attn_tui.tui.panes.sweep.pane import SweepPane
from stage import SIZES, SMALL, Stage, played


@pytest.fixture(autouse=True)
def small_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out long contexts, so that measuring a map is quick."""
    for place in ("map_view", "parts"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{place}.N_KEYS", (4, 16, 64))
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{place}.D_KS", (1, 4, 16, 64))


async def mapped(stage: Stage) -> SweepPane:
    """Open the pane with its map, and wait until it is complete."""
    pane = await stage.opened(SweepPane)
    pane.view = "map"
    pane.follow()
    await stage.until(lambda: pane.is_current)
    await stage.still()
    return pane


@played()
async def test_shift_v_leads_to_the_map_and_back(stage: Stage) -> None:
    pane = await stage.complete(SweepPane)
    await stage.press("V")
    assert pane.map.widget.display
    assert not pane.plot.display
    await stage.until(lambda: pane.is_current)
    await stage.until(lambda: "exact" in "\n".join(stage.part(pane.map.widget)))
    await stage.press("V", "V")
    assert not pane.map.widget.display
    assert pane.plot.display
    await stage.known(pane)


@played()
async def test_the_key_bar_names_the_next_view(stage: Stage) -> None:
    await stage.complete(SweepPane)
    for view in ("table", "map", "rules"):
        assert f"v {view}   " in stage.lines[-1]
        await stage.press("v")


@played()
async def test_arrows_walk_over_d_k_and_keys(stage: Stage) -> None:
    await mapped(stage)
    for key, change in (
        ("left", {"d_k": 16}),
        ("up", {"d_k": 16, "n_keys": 64}),
        ("up", {"d_k": 16, "n_keys": 64}),
        ("down", {"d_k": 16, "n_keys": 16}),
        ("right", {"d_k": 64, "n_keys": 16}),
        ("u", {"n_keys": 16, "d_k": 16}),
    ):
        await stage.press(key)
        if key != "u":
            assert stage.asked == replace(SMALL, **change), key


@played()
async def test_a_statistic_without_theory_is_measured(stage: Stage) -> None:
    pane = await mapped(stage)
    pane.plot.statistic = STATISTIC["dead_rows"]
    pane.follow()
    await stage.until(lambda: pane.is_current)
    assert pane.map.mapped.complete
    assert len(pane.map.mapped.measured) == 3 * 4
    assert "measured: 2 draws of 8 rows" in "\n".join(stage.part(pane.map.widget))


@played()
async def test_the_command_and_the_keys_are_those_of_the_map(stage: Stage) -> None:
    pane = await mapped(stage)
    assert pane.command() == (
        "attn-tui sweep --d-k 1,4,16,64 --n-keys 4,16,64 --n-queries 8 --batch 2 --statistics entropy"
    )
    assert stage.lines[-1].startswith(" ←→ d_k ×2 ÷2   ↑↓ keys ×2 ÷2")


@played(replace(SMALL, scale="log_d_k"))
async def test_other_parameters_make_another_map(stage: Stage) -> None:
    pane = await mapped(stage)
    before = pane.map.mapped
    await stage.press("right_square_bracket")
    assert pane.map.mapped is before
    await stage.press("S")
    await stage.until(lambda: pane.is_current)
    assert pane.map.mapped is not before
    assert pane.map.mapped.parameters == replace(stage.asked, d_k=Parameters.d_k, n_keys=Parameters.n_keys)


@played()
async def test_a_click_sets_d_k_and_keys_and_every_size_fits(stage: Stage) -> None:
    pane = await mapped(stage)
    for size in [*SIZES, (40, 12)]:
        await stage.resize(*size)
        assert all(len(line) == size[0] for line in stage.lines)
    await stage.resize(120, 40)
    lines = stage.part(pane.map.widget)
    y = next(y for y, line in enumerate(lines) if line.strip("│ ").startswith("64 "))
    await stage.click((8, y), pane.map.widget)
    assert (stage.asked.n_keys, stage.asked.d_k) == (64, D_KS[0])

"""The mouse: what looks as if it could be clicked can be, the wheel steps fields, and no event ends the app."""

from dataclasses import replace
from pathlib import Path

import pytest
from attn_tui.core.lab.results import Order, listed_rules
from attn_tui.core.questions.learn import ReadItems
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.tui.panes.catalogue import PANES, TABS
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.views.results.rules import by_family
from attn_tui.tui.widgets.modal import HelpScreen
from attn_tui.tui.widgets.picker import ChoiceScreen
from monkey import run
from stage import SMALL, Stage, played, untested_claims
from textual import events
from textual.geometry import Offset

pytestmark = pytest.mark.usefixtures("short_rule_grids")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@played()
async def test_a_click_on_a_tab_shows_its_pane(stage: Stage, size: tuple[int, int]) -> None:
    for tab in (*reversed(TABS), [*TABS][-1]):
        await stage.still()
        await stage.click((stage.lines[0].index(f" {tab} ") + 2, 0))
        assert stage.app.tab == tab


@played(size=(40, 12))
async def test_a_click_on_an_arrow_beside_the_only_tab_turns_to_the_next_pane(stage: Stage) -> None:
    for arrow, pane in ((">", "Softmax"), (">", "Rules"), ("<", "Softmax"), ("Softmax", "Softmax")):
        await stage.still()
        await stage.click(arrow)
        assert stage.app.active == pane


@played(size=(160, 24), settled=True)
async def test_a_click_on_a_key_of_the_footer_presses_it(stage: Stage) -> None:
    for words, at, d_k in (("←→ d_k", 1, 65), ("←→ d_k", 0, 64), ("↑↓ ×2", 0, 128), ("↑↓ ×2", 1, 64)):
        await stage.click(stage.place(words) + Offset(at))
        assert stage.asked.d_k == d_k
    await stage.click("s scale")
    await stage.press("down", "enter")
    assert stage.asked.scale == "d_k"
    await stage.click("? help")
    stage.screen(HelpScreen)


@played(settled=True)
async def test_a_click_on_a_row_of_the_table_explains_it(stage: Stage) -> None:
    await stage.press("v")
    await stage.settled()
    for name in ("max_weight", "entropy"):
        await stage.still()
        label = STATISTIC[name].short_label
        await stage.click(label, stage.table)
        assert stage.table.statistic.name == name
        await stage.still()
        assert any(line.startswith(f"▌{label}") for line in stage.part(stage.table))


@played(settled=True)
async def test_the_wheel_and_the_arrows_step_a_field(stage: Stage) -> None:
    await stage.press("p")
    y = next(y for y, line in enumerate(stage.part(stage.panel)) if line.strip().startswith("keys"))
    await stage.scroll(events.MouseScrollUp, (3, y), stage.panel)
    assert stage.asked == replace(SMALL, n_keys=32)
    await stage.scroll(events.MouseScrollDown, (3, y), stage.panel)
    assert stage.asked == SMALL
    choice = next(y for y, line in enumerate(stage.part(stage.panel)) if line.strip().startswith("mask"))
    for turn, mask in ((events.MouseScrollUp, "causal"), (events.MouseScrollDown, "none")):
        await stage.scroll(turn, (3, choice), stage.panel)
        assert stage.asked.mask == mask
    await stage.click((3, y), stage.panel)
    await stage.still()
    for arrow, keys in (("▸", 17), ("◂", 16)):
        await stage.click((stage.part(stage.panel)[y].index(arrow), y), stage.panel)
        assert stage.asked.n_keys == keys
        await stage.still()
    await stage.press("u", "u", "u", "u")  # letters type in the field


@played()
async def test_a_click_on_a_heading_sorts_the_rules_and_a_second_one_reverses(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    heading = stage.part(pane.table)[1]
    for words, column in (("weight %", "max_weight"), ("multiplier", "multiplier"), ("rule", "rule")):
        await stage.click((heading.index(words) + 2, 1), pane.table)
        assert pane.order == Order(column) or column == "rule"
        await stage.click((heading.index(words) + 2, 0), pane.table)
        assert pane.order == Order(column, reverse=True)
    assert list(pane.table.shown.names) == by_family(listed_rules(SMALL), reverse=True)


@played()
async def test_a_click_selects_a_head_of_the_map_and_turns_the_order_of_the_list(stage: Stage) -> None:
    pane = await stage.head()
    for layer, head in ((3, 5), (0, 0), (5, 11)):
        await stage.click((4 + 2 * head, 2 + layer), pane.map)
        assert pane.heads.cursor == (layer, head)
    await stage.click((2, 3), pane.map)
    assert pane.heads.cursor == (5, 11), "the number of a layer is no head"
    await stage.click((5, 0), pane.list)
    assert pane.heads.order == 1
    await stage.press("u")
    assert pane.heads.order == 0


@played()
async def test_a_click_and_the_wheel_select_a_claim(stage: Stage) -> None:
    pane = await stage.opened(LearnPane)
    await stage.press("end")
    await stage.at_rest()
    last = pane.item.number
    await stage.click((5, -1), pane.list)
    assert pane.item.number == last
    await stage.click((5, 5), pane.list)
    clicked = pane.item
    assert clicked.kind == "claim"
    assert clicked.statement.split()[0] in stage.words(pane.text)
    await stage.scroll(events.MouseScrollDown, (5, 5), pane.list)
    assert pane.item.number == clicked.number + 1


@played()
async def test_a_click_on_a_row_of_the_sweep_sets_d_k_and_the_wheel_steps_a_shape(stage: Stage) -> None:
    pane = await stage.opened(SweepPane)
    await stage.press("v")
    y, line = next((y, line) for y, line in enumerate(stage.part(pane.table)) if y and line.split()[0].isdigit())
    await stage.click((3, y), pane.table)
    assert stage.asked.d_k == int(line.split()[0])
    pane = await stage.opened(HeadsPane)
    before = pane.shape.values["d_model"]
    await stage.scroll(events.MouseScrollUp, (3, 0), pane.shape)
    assert pane.shape.values["d_model"] == 2 * before
    await stage.press("u")
    assert pane.shape.values["d_model"] == before


@pytest.mark.slow
@played()
async def test_a_choice_of_a_race_is_chosen_from_a_list_and_a_click_drops_a_refused_text(stage: Stage) -> None:
    pane = await stage.opened(TrainPane)
    row = [field and field.name for field in pane.settings.rows].index("optimiser")
    await stage.click((3, row), pane.settings)
    await stage.click((3, row), pane.settings)
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press(*"adam", "enter")
    assert pane.race.optimiser == "adam"
    await stage.press("enter")
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press("escape", "down", *"99999")
    assert pane.is_stale
    await stage.click((3, row), pane.settings)
    await stage.at_rest()
    assert not pane.is_stale


@played(size=(80, 24))
async def test_fields_do_not_move_under_the_pointer_in_a_low_panel(stage: Stage) -> None:
    await stage.press("p")
    for y in (3, 9, 15, 19):
        name = stage.part(stage.panel)[y].split()[0]
        await stage.click((3, y), stage.panel)
        assert stage.part(stage.panel)[y].lstrip("▌ ").startswith(name)
        cursor = stage.panel.cursor
        await stage.click((3, y), stage.panel)
        assert stage.panel.cursor == cursor
        await stage.press("escape", "escape", "p", "p")


@played(size=(120, 40))
async def test_a_click_that_arrives_after_the_screen_became_smaller_changes_nothing(stage: Stage) -> None:
    focused = stage.app.focused
    await stage.click(Offset(500, 500))
    assert stage.app.focused is focused is not None
    await stage.press("ctrl+p")
    place = Offset(stage.app.size.width - 1, stage.app.size.height - 1)
    await stage.resize(40, 12)
    await stage.click(place)
    await stage.press(*"bf16", "enter")
    assert stage.asked.precision == "bfloat16"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), pytest.param((120, 40), marks=pytest.mark.soak)])
@pytest.mark.parametrize("pane", PANES)
def test_random_events_end_no_app_and_leave_nothing_stale(
    pane: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # exports and screenshots are written here
    monkeypatch.setattr(ReadItems, "work", untested_claims)
    assert run(len(pane) + size[0], lambda events: events < 60, pane, size) >= 60

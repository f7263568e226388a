"""The mouse: what looks as if it could be clicked can be, and the wheel steps fields."""

from dataclasses import replace

import pytest
from attn_tui.core.lab.results import Order, listed_rules
from attn_tui.core.parameters import FIELD
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.catalogue import TABS
from attn_tui.tui.panes.claims.pane import ClaimsPane
from attn_tui.tui.panes.claims.requests import CheckClaims
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.panes.rules.view import by_family
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.widgets.modal import HelpScreen
from attn_tui.tui.widgets.picker import ChoiceScreen
from stage import SMALL, Stage, played, untested_claims
from textual import events
from textual.widget import Widget

pytestmark = pytest.mark.usefixtures("short_rule_grids")


async def click(stage: Stage, widget: Widget, x: int, y: int) -> None:
    """Click at a place of a widget's content, within its border."""
    content = widget.content_region
    await stage.pilot.click(offset=(content.x + x, content.y + y))
    await stage.answered()


async def scroll(stage: Stage, widget: Widget, x: int, y: int, kind: type[events.MouseEvent]) -> None:
    at = widget.content_region.x + x, widget.content_region.y + y
    stage.app.post_message(kind(None, *at, 0, 0, 0, False, False, False, screen_x=at[0], screen_y=at[1]))
    await stage.answered()


def line_of(stage: Stage, widget: Widget, words: str) -> int:
    return next(y for y, line in enumerate(stage.part(widget)) if line.strip().startswith(words))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@played()
async def test_a_click_on_a_tab_shows_its_pane(
    stage: Stage, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    for tab in (*reversed(TABS), [*TABS][-1]):
        await stage.still()
        await stage.pilot.click(offset=(stage.lines[0].index(f" {tab} ") + 2, 0))
        await stage.answered()
        assert stage.app.tab == tab


@played(size=(40, 12))
async def test_a_click_on_an_arrow_beside_the_only_tab_turns_to_the_next_pane(stage: Stage) -> None:
    for arrow, pane in ((">", "Softmax"), (">", "Rules"), ("<", "Softmax"), ("Softmax", "Softmax")):
        await stage.still()
        await stage.pilot.click(offset=(stage.lines[0].index(arrow), 0))
        await stage.answered()
        assert stage.app.active == pane


@played(size=(160, 24), settled=True)
async def test_a_click_on_a_key_of_the_footer_presses_it(stage: Stage) -> None:
    y = 23
    for words, at, d_k in (("←→ d_k", 1, 65), ("←→ d_k", 0, 64), ("↑↓ ×2", 0, 128), ("↑↓ ×2", 1, 64)):
        await stage.pilot.click(offset=(stage.lines[y].index(words) + at, y))
        await stage.answered()
        assert stage.asked.d_k == d_k
    await stage.pilot.click(offset=(stage.lines[y].index("s scale") + 3, y))
    await stage.answered()
    await stage.press("down", "enter")
    assert stage.asked.scale == "d_k"
    await stage.pilot.click(offset=(stage.lines[y].index("? help"), y))
    await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))


@played(settled=True)
async def test_the_wheel_and_the_arrows_step_a_field(stage: Stage) -> None:
    y = line_of(stage, stage.panel, FIELD["n_keys"].label)
    await scroll(stage, stage.panel, 3, y, events.MouseScrollUp)
    assert stage.asked == replace(SMALL, n_keys=32)
    await scroll(stage, stage.panel, 3, y, events.MouseScrollDown)
    assert stage.asked == SMALL
    await click(stage, stage.panel, 3, y)
    await stage.still()
    for arrow, keys in (("▸", 17), ("◂", 16)):
        await click(stage, stage.panel, stage.part(stage.panel)[y].index(arrow), y)
        assert stage.asked.n_keys == keys
        await stage.still()
    await stage.press("u", "u", "u", "u")  # letters type in the field


@played(settled=True)
async def test_a_click_on_a_row_of_the_table_explains_it(stage: Stage) -> None:
    for name in ("max_weight", "entropy"):
        await stage.still()
        label = STATISTIC[name].short_label
        await click(stage, stage.table, 3, line_of(stage, stage.table, label))
        assert stage.table.statistic.name == name
        await stage.still()
        assert any(line.startswith(f"▌{label}") for line in stage.part(stage.table))


@played()
async def test_a_click_on_a_heading_sorts_the_rules_and_a_second_one_reverses(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    heading = stage.part(pane.table)[1]
    for words, column in (("weight %", "max_weight"), ("multiplier", "multiplier"), ("rule", "rule")):
        await click(stage, pane.table, heading.index(words) + 2, 1)
        assert pane.order == Order(column) or column == "rule"
        await click(stage, pane.table, heading.index(words) + 2, 0)
        assert pane.order == Order(column, reverse=True)
    assert list(pane.table.shown.names) == by_family(listed_rules(SMALL), reverse=True)


@played()
async def test_a_click_selects_a_head_of_the_map(stage: Stage) -> None:
    pane = await stage.head()
    assert isinstance(pane, CapturePane)
    for layer, head in ((3, 5), (0, 0), (5, 11)):
        await click(stage, pane.map, 4 + 2 * head, 2 + layer)
        assert pane.heads.cursor == (layer, head)
    await click(stage, pane.map, 2, 3)
    assert pane.heads.cursor == (5, 11), "the number of a layer is no head"


@played(size=(80, 24))
async def test_a_click_and_the_wheel_select_a_claim(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    pane = await stage.opened(ClaimsPane)
    await stage.at_rest()
    await click(stage, pane.claims, 5, 5)
    assert pane.claims.cursor == 5
    await stage.still()
    chosen = pane.claims.chosen
    assert chosen is not None
    assert chosen.statement.split()[0] in stage.words(pane.text)
    await scroll(stage, pane.claims, 5, 5, events.MouseScrollDown)
    assert pane.claims.cursor == 6


@played()
async def test_a_click_on_a_row_of_the_sweep_sets_d_k(stage: Stage) -> None:
    pane = await stage.opened(SweepPane)
    await stage.still()
    y, line = next((y, line) for y, line in enumerate(stage.part(pane.table)) if y and line.split()[0].isdigit())
    await click(stage, pane.table, 3, y)
    assert stage.asked.d_k == int(line.split()[0])


@played()
async def test_the_wheel_steps_a_field_of_the_shape(stage: Stage) -> None:
    pane = await stage.opened(HeadsPane)
    await stage.still()
    before = pane.shape.values["d_model"]
    await scroll(stage, pane.shape, 3, 0, events.MouseScrollUp)
    assert pane.shape.values["d_model"] == 2 * before
    await stage.press("u")
    assert pane.shape.values["d_model"] == before


@pytest.mark.slow
@played()
async def test_a_choice_of_a_race_is_chosen_from_a_list_and_a_click_drops_a_refused_text(stage: Stage) -> None:
    pane = await stage.opened(TrainPane)
    await stage.still()
    row = [field and field.name for field in pane.settings.rows].index("optimiser")
    await click(stage, pane.settings, 3, row)
    await click(stage, pane.settings, 3, row)
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press(*"adam", "enter")
    assert pane.race.optimiser == "adam"
    await stage.press("enter")
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press("escape", "down", *"99999")
    assert pane.is_stale
    await click(stage, pane.settings, 3, row)
    await stage.at_rest()
    assert not pane.is_stale


@played()
async def test_a_click_on_the_heads_of_columns_turns_the_order_of_the_list(stage: Stage) -> None:
    pane = await stage.head()
    await click(stage, pane.list, 5, 0)
    assert pane.heads.order == 1
    await stage.press("u")
    assert pane.heads.order == 0


@played(size=(80, 24))
async def test_fields_do_not_move_under_the_pointer_in_a_low_panel(stage: Stage) -> None:
    await stage.press("p")
    for y in (3, 9, 15, 19):
        name = stage.part(stage.panel)[y].split()[0]
        await click(stage, stage.panel, 3, y)
        assert stage.part(stage.panel)[y].lstrip("▌ ").startswith(name)
        cursor = stage.panel.cursor
        await click(stage, stage.panel, 3, y)
        assert stage.panel.cursor == cursor
        await stage.press("escape", "escape", "p")

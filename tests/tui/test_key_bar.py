"""The key bar shows the keys of the part that has the focus; no layout moves, and no title or count misleads."""

from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import OpenCapture
from stage import SMALL, Stage, played


def bar(stage: Stage) -> str:
    return stage.lines[-1]


@played(size=(120, 40), settled=True)
async def test_a_focused_field_of_the_lab_shows_its_own_keys_and_no_letters(stage: Stage) -> None:
    assert "q quit" in bar(stage)
    assert "Enter tour" in bar(stage)
    await stage.press("tab")
    assert bar(stage).startswith(" ↑↓ step   ←→ ±1   a-z 0-9 type   Enter accept, list   Tab next field   Esc back")
    assert not any(words in bar(stage) for words in ("quit", "scale", "export", "copy", "undo"))
    for words in ("a-z", "0-9"):
        await stage.pilot.click(offset=(bar(stage).index(words), 39))
        await stage.answered()
        assert stage.panel.editing is None, "a click on them types nothing"
    await stage.press("escape")
    assert "q quit" in bar(stage)


@played(size=(120, 40), settled=True)
async def test_the_table_of_the_lab_shows_its_own_keys(stage: Stage) -> None:
    before: Parameters = stage.asked
    await stage.press("shift+tab")
    assert bar(stage).startswith(" ↑↓ row   PgUp PgDn page   Esc back   ←→ d_k ±1")
    assert "q quit" in bar(stage)
    await stage.press("down", "escape")
    assert stage.asked == before == SMALL
    assert bar(stage).startswith(" ←→ d_k ±1   ↑↓ ×2 ÷2")


@played(size=(120, 40), first_pane="Capture")
async def test_the_parts_of_the_capture_pane_show_their_own_keys(stage: Stage) -> None:
    await stage.head()
    assert bar(stage).startswith(" ←→ head   n N of note")
    await stage.press("tab")
    assert bar(stage).startswith(" ↑↓ head   Esc back   n N of note")
    await stage.press("tab")
    assert bar(stage).startswith(" ↑↓ query   ←→ key   + - zoom   Esc back")
    await stage.press("slash")
    assert bar(stage).split() == ["Enter", "accept", "Esc", "cancel"]
    await stage.press("escape")
    assert bar(stage).startswith(" ←→ head   n N of note")


@played(size=(120, 40), first_pane="Capture")
async def test_the_parts_of_the_capture_pane_stay_where_they_are_after_other_sizes(stage: Stage) -> None:
    pane = await stage.head()
    before = {part: widget.region for part, widget in pane.parts.items()}
    for size in ((200, 60), (80, 24), (120, 40)):
        await stage.resize(*size)
    await stage.still()
    assert {part: widget.region for part, widget in pane.parts.items()} == before


@played(size=(80, 24), first_pane="Capture")
async def test_a_title_that_does_not_fit_is_shortened_instead_of_cut(stage: Stage) -> None:
    pane = await stage.head()
    y, x = pane.matrix.region.y, pane.matrix.region.x
    assert stage.lines[y][x:].startswith(" ─ 0/0: 70 × 70 ─")
    await stage.press("+")
    await stage.still()
    assert stage.lines[y][x:].startswith(" ─ 0/0 ─")
    assert "…" not in stage.lines[y]


@played(size=(120, 40), first_pane="Capture", hold=True)
async def test_no_head_is_counted_before_one_is_measured(stage: Stage) -> None:
    pane = await stage.opened(CapturePane)
    await stage.answered()
    stage.engine.hand_on(stage.engine.held_for(OpenCapture))
    await stage.still()
    assert pane.heads.capture is not None
    assert not pane.list.ranking.heads
    assert "0 heads" not in stage.text
    assert stage.part(pane.list)[0].strip() == "measuring"

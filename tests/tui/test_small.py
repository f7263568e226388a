"""Every pane is complete and usable on every screen from 40 x 12 up."""

import re
from collections.abc import Iterator

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.watch.widget import RunMap
from attn_tui.tui.terminal.paced_app import LEAST
from attn_tui.tui.views.bars import NARROW
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.numbers import aligned, error
from attn_tui.tui.views.plots.histograms import TITLES
from attn_tui.tui.views.results.table import CELL, LABEL
from attn_tui.tui.widgets.lines import LinesWidget
from attn_tui.tui.widgets.modal import HelpScreen
from cases import present
from stage import SMALL, Stage, played

pytestmark = pytest.mark.usefixtures("short_rule_grids")

SIZES = [(40, 12), (60, 20), (80, 12), (80, 24), (120, 40)]
NARROW_SIZES = [size for size in SIZES if size[0] < NARROW]

every_size = pytest.mark.parametrize("size", SIZES[::2], ids=lambda size: "x".join(map(str, size)))
every_narrow_size = pytest.mark.parametrize("size", NARROW_SIZES, ids=lambda size: "x".join(map(str, size)))


async def opened(stage: Stage, name: str) -> None:
    """Show a pane and wait for everything that it computes."""
    await stage.show(name)
    await stage.at_rest()


def visible(stage: Stage) -> Iterator[LinesWidget]:
    """Yield the widgets that are on screen."""
    for widget in stage.app.screen.query(LinesWidget):
        if widget.region.area and all(getattr(above, "display", True) for above in widget.ancestors_with_self):
            yield widget


def assert_whole(stage: Stage, size: tuple[int, int]) -> None:
    """Assert that every line has the width, and that no widget is cut, overlaps another or leaves the screen."""
    assert [line_width(((line, "text"),)) for line in stage.lines] == [size[0]] * size[1]
    shown = list(visible(stage))
    for number, widget in enumerate(shown):
        region = widget.region
        assert 0 <= region.x <= region.right <= size[0], widget
        assert 0 <= region.y <= region.bottom <= size[1], widget
        lines = widget.compose_lines(*widget.room)
        assert all(line_width(line) <= region.width for line in lines), widget
        # What is said of a head below its map ends where there is no more room.
        assert len(lines) <= widget.room.height or (isinstance(widget, RunMap) and size[1] < 20), widget
        for other in shown[number + 1 :]:
            assert not region.overlaps(other.region), (widget, other)


def assert_named(stage: Stage, tab: str) -> None:
    """Assert that the top bar highlights the tab, and the view of the pane on screen if the tab has several."""
    top, views = stage.app.top, PANES[stage.app.active].views
    lit = [text.strip() for text, role in top.compose_lines(*top.size)[0] if role == "accent"]
    assert lit[0] == tab
    assert f" {tab} " in stage.lines[0]
    if views != ("",):
        assert lit[1] in views
        assert f" {lit[1]} " in stage.lines[0]


@pytest.mark.parametrize(
    ("size", "glyphs"),
    [
        pytest.param((40, 12), ASCII, marks=pytest.mark.slow, id="40x12"),
        pytest.param((80, 12), UNICODE, marks=pytest.mark.slow, id="80x12"),
        pytest.param((80, 24), UNICODE, id="80x24"),
        pytest.param((120, 40), ASCII, marks=pytest.mark.slow, id="120x40"),
    ],
)
@pytest.mark.parametrize("name", PANES)
@played()
async def test_every_pane_is_whole_with_its_keys_in_all_its_views(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs, name: str
) -> None:
    await opened(stage, name)
    views: list[str] = []
    shown: set[tuple[str, str]] = set()
    while stage.text not in views:
        views.append(stage.text)
        assert_whole(stage, size)
        assert stage.text.isascii() == glyphs.ascii
        assert_named(stage, PANES[name].tab)
        shown.add(stage.app.view)
        assert stage.app.pane in present(stage.app.focused).ancestors_with_self
        assert "? help" in stage.lines[-1]
        await stage.press("escape", "v")  # Esc leaves a field, into which v would be typed
        await stage.at_rest()
    assert shown >= {(name, view) for view in PANES[name].views}
    await opened(stage, name)  # v may have turned to another one of its tab
    await stage.press("m" if name == "Rules" else "M")  # the next statistic, or what else the pane has
    await stage.at_rest()
    assert stage.text.isascii() == glyphs.ascii
    for key in ("?", "K"):
        await stage.press(key)
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        await stage.still()
        assert_whole(stage, size)
        assert stage.text.isascii() == glyphs.ascii
        await stage.press("escape")


@pytest.mark.slow
@pytest.mark.parametrize("name", PANES)
@played()
async def test_resizing_keeps_every_pane_whole_and_its_focus(stage: Stage, name: str) -> None:
    await opened(stage, name)
    for keys, sizes in (((), [(120, 40), (80, 12)]), (("tab", "tab"), [(80, 24), (60, 20)])):
        await stage.press(*keys)
        focused = present(stage.app.focused)
        for size in ((20, 5), *sizes, (40, 12)):
            await stage.resize(*size)
            if size >= LEAST:
                assert_whole(stage, size)
                assert stage.app.focused is focused, size
                assert focused.region.area, f"the widget with the focus is hidden at {size}"


# The Lab


@pytest.mark.parametrize("size", [(40, 12), (LABEL + 2 * CELL - 3, 20)])
@played(settled=True)
async def test_i_shows_errors_and_exact_values_if_only_values_fit(stage: Stage, size: tuple[int, int]) -> None:
    await stage.press("v")
    await stage.settled()
    column, exact = stage.measurement.columns[0], stage.theory.prediction.columns[0]
    entropy = column.measured["entropy"]
    for wanted in (
        aligned(entropy.value, UNICODE),
        f"±{error(entropy.stderr, UNICODE)}",
        aligned(exact.values["entropy"], UNICODE),
    ):
        row = next(line for line in stage.part(stage.table) if line[1:].startswith("entropy"))
        assert wanted.strip() in row
        await stage.press("i")


@every_narrow_size
@played(settled=True)
async def test_v_turns_to_table_all_histograms_and_fields_and_back(stage: Stage, size: tuple[int, int]) -> None:
    first, seen = stage.text, ""
    for _ in range(8):
        await stage.press("v")
        if stage.text == first:
            break
        seen += stage.text
        if stage.lab.in_front is stage.panel:
            await stage.press("right")
            assert stage.asked.d_k == 65
            await stage.press("left")
            await stage.settled()
    assert stage.text == first
    assert stage.app.focused is stage.lab
    assert all(title in seen for title in TITLES.values())
    assert "queries" in seen


@every_narrow_size
@played(settled=True)
async def test_leaving_the_fields_shows_the_results_again(stage: Stage, size: tuple[int, int]) -> None:
    before = stage.text
    await stage.press("tab", "tab", "up")  # the second field; the first one, the model, sets several
    await stage.settled()
    assert not stage.table.size
    await stage.press("down", "escape")
    await stage.settled()
    assert stage.text == before


@every_size
@played(settled=True)
async def test_the_table_counts_its_hidden_rows(stage: Stage, size: tuple[int, int]) -> None:
    await stage.press("v")
    await stage.settled()
    shown = stage.part(stage.table)
    everything = run(SMALL).columns[0].measured
    counted = [each for each in STATISTICS if not each.exported_only]
    rows = [each.short_label for each in counted if everything[each.name].value is not None]
    names = {line[1:LABEL].strip() for line in shown}
    left_out = [label for label in (*rows, "saturation") if label[: LABEL - 1] not in names]
    told = r"(?:^ |─ )(\d+) (?:hidden \(Tab|more rows \(Tab|more rows: v|more: v)"
    said = {int(found[1]) for line in (*shown, *stage.lines) if (found := re.search(told, line))}
    assert said == ({len(left_out)} if left_out else set())


# Capture


@pytest.mark.slow
@every_narrow_size
@played()
async def test_v_turns_to_the_map_and_all_views_of_the_head_and_back(stage: Stage, size: tuple[int, int]) -> None:
    await opened(stage, "Capture")
    pane = await stage.head()
    await stage.at_rest()
    first = stage.text
    assert "by head" in first or "part of" in first
    assert not pane.results.size
    seen = ""
    for _ in range(20):
        await stage.press("v")
        await stage.at_rest()
        if stage.text == first:
            break
        seen += stage.text
        await stage.press("right")
        await stage.until(lambda: pane.heads.cursor == (0, 1))
        await stage.press("left")
        await stage.until(lambda: pane.heads.cursor == (0, 0) and not pane.results.why_stale)
        await stage.still()
    assert stage.text == first
    assert all(title in seen for title in TITLES.values() if "∂" not in title)
    for words in ("effective keys", "worst first", "attention 70", "query 69", "every rule"):
        assert words in seen


@pytest.mark.slow
@every_size
@played()
async def test_the_cursor_is_visible_on_every_head_and_the_facts_scroll_to_their_end(
    stage: Stage, size: tuple[int, int]
) -> None:
    await opened(stage, "Capture")
    pane = await stage.opened(CapturePane)
    if size[1] <= 15:
        assert ", part" in stage.part(pane.map)[0]
    for key in [*["right"] * 11, *["down"] * 5]:
        await stage.press(key)
        reversed_cells = [piece for piece in stage.segments(pane.map) if piece.style and piece.style.reverse]
        assert len(reversed_cells) == 1, key
    seen = stage.words(pane.map)
    for _ in range(9):
        await stage.press("pagedown")
        seen += stage.words(pane.map)
    assert "layer 5 · head 11" in seen
    assert present(pane.heads.capture).path.name in seen.replace(" ", "")
    assert "more lines" not in stage.words(pane.map)

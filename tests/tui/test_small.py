"""Every pane is whole and can be used on every screen from 40 x 12 up."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from attn_tui.core.lab.claims import CLAIMS, Outcome
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui import work
from attn_tui.tui.app import LEAST
from attn_tui.tui.messages import ClaimsListed, ClaimTested
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims import ClaimsPane
from attn_tui.tui.recompute import Work
from attn_tui.tui.views.bars import NARROW
from attn_tui.tui.views.claims import claim_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.histograms import TITLES, pair_names
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.numbers import aligned, error
from attn_tui.tui.views.panel import applicable, value_text
from attn_tui.tui.views.table import measured_text
from attn_tui.tui.widgets.help_screen import HelpScreen, HelpText
from attn_tui.tui.widgets.lines import LinesWidget
from test_app import SMALL, Stage, play

SIZES = [(40, 12), (60, 20), (80, 12), (80, 24), (120, 40)]
NARROW_SIZES = [size for size in SIZES if size[0] < NARROW]

every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
every_narrow_size = pytest.mark.parametrize("size", NARROW_SIZES, ids=lambda size: "x".join(map(str, size)))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds elsewhere is there at once: claims untested, a short sweep."""
    monkeypatch.setattr(work, "check_claims", some_claims)
    from attn_tui.tui.panes.sweep import GRIDS

    monkeypatch.setattr("attn_tui.tui.panes.sweep.GRIDS", (replace(GRIDS[0], text="1:64:log6,16,32,64"), *GRIDS[1:]))


def some_claims() -> Work:
    yield ClaimsListed("claims", CLAIMS)
    for claim in CLAIMS:
        yield ClaimTested("claims", Outcome(claim, (), "not testable here", "Nothing was put to the test."))


async def opened(stage: Stage, name: str) -> None:
    """Show a pane and wait for all that it computes."""
    stage.app.action_pane(name)
    pane = stage.app.panes[name]
    await stage.answered()
    if name == "Lab":
        await stage.settled()
    elif name == "Capture":
        await stage.until(lambda: len(stage.pane.map.measured) == 72 and stage.pane.results._contents.columns)
    await stage.until(lambda: pane.progress is None, "the end of the computation")
    await stage.still()


def visible(stage: Stage) -> Iterator[LinesWidget]:
    """The widgets on screen that show something."""
    for widget in stage.app.screen.query(LinesWidget):
        if widget.region.area and all(getattr(above, "display", True) for above in widget.ancestors_with_self):
            yield widget


def assert_whole(stage: Stage, size: tuple[int, int]) -> None:
    """Every line has the width, and no widget covers another one or leaves the screen."""
    assert [line_width(((line, "text"),)) for line in stage.lines] == [size[0]] * size[1]
    shown = list(visible(stage))
    for number, widget in enumerate(shown):
        region = widget.region
        assert 0 <= region.x <= region.right <= size[0], widget
        assert 0 <= region.y <= region.bottom <= size[1], widget
        for other in shown[number + 1 :]:
            assert not region.overlaps(other.region), (widget, other)
    for widget in shown:
        assert all(line_width(line) <= widget.region.width for line in widget._lines), widget


@pytest.mark.parametrize("size", [(40, 12), (80, 12), (120, 40)])
@pytest.mark.parametrize("name", PANES)
def test_every_pane_is_whole_with_its_keys_in_all_its_views(size: tuple[int, int], name: str) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, name)
        for _ in range(6):
            await stage.still()
            assert_whole(stage, size)
            assert f" {name} " in stage.lines[0]
            assert "? help" in stage.lines[-1]
            await stage.press("v")
        await stage.press("?")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        await stage.still()
        assert_whole(stage, size)

    play(script, size=size)


@pytest.mark.parametrize("name", PANES)
def test_a_small_screen_is_ascii_if_that_is_asked_for(name: str) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, name)
        for _ in range(6):
            await stage.still()
            assert stage.text.isascii()
            await stage.press("v")

    play(script, size=(40, 12), glyphs=ASCII)


@pytest.mark.parametrize("name", PANES)
def test_resizing_leaves_every_pane_whole_and_the_focus_where_it_is(name: str) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, name)
        for keys in ((), ("tab", "tab")):
            await stage.press(*keys)
            focused = stage.app.focused
            assert focused is not None
            for size in (*SIZES[::2], (20, 5), *reversed(SIZES)):
                await stage.resize(*size)
                await stage.still()
                if size >= LEAST:
                    assert_whole(stage, size)
                    assert stage.app.focused is focused, size
                    assert focused.region.area, f"what has the focus is to be seen at {size}"

    play(script)


@pytest.mark.parametrize("size", [(LEAST[0] - 1, LEAST[1]), (LEAST[0], LEAST[1] - 1)])
def test_below_the_least_size_one_line_says_which_size_is_needed(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.still()
        shown = [line.strip() for line in stage.lines if line.strip()]
        assert shown == [f"attn-tui needs {LEAST[0]} x {LEAST[1]}, not {size[0]} x {size[1]}."]

    play(script, size=size)


# The Lab


@every_size
def test_every_field_is_reached_and_its_value_read(size: tuple[int, int]) -> None:
    long = replace(
        SMALL, components="student_t", scale="custom", multiplier=0.1234567, mean_q=-12.3456, seed=2**32 - 1
    )

    async def script(stage: Stage) -> None:
        await stage.settled()
        for field in applicable(long):
            await stage.press("tab")
            await stage.still()
            assert stage.app.focused is stage.panel
            (row,) = (line for line in stage.part(stage.panel) if re.match(rf"\s*{re.escape(field.label)}[ ◂]", line))
            assert value_text(field, long) in row
        await stage.press("?")
        await stage.until(lambda: FIELD["seed"].option in stage.text)

    play(script, long, size=size)


@every_size
def test_what_is_not_accepted_is_explained_beside_the_field(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for number, field in enumerate(applicable(SMALL)):
            await stage.press("tab")
            if field.kind != "choice":
                await stage.press("-")
                await stage.until(lambda: "is not accepted" in stage.words(stage.panel))
                await stage.still()
                shown = stage.words(stage.panel)
                assert field.accepted in shown, number
                assert "-_" in shown
                await stage.press("escape")
        await stage.press("escape", "0")
        await stage.until(lambda: "it takes a whole number from 1 to 16384" in stage.words(stage.lab.results.words))

    play(script, size=size)


@every_size
def test_every_statistic_is_reached_and_its_value_read(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.screen.set_focus(stage.table)
        await stage.answered()
        for statistic in STATISTICS:
            if not any(column.measured[statistic.name].value is not None for column in stage.measurement.columns):
                continue
            await stage.still()
            (row,) = (line for line in stage.part(stage.table) if line.startswith("▌"))
            assert row[1:].startswith(statistic.label)
            for column in stage.measurement.columns:
                assert measured_text(column, statistic, UNICODE)[0].strip() in row
            await stage.press("down")

    play(script, size=size)


@every_narrow_size
def test_t_shows_errors_and_exact_values_where_only_values_fit(size: tuple[int, int]) -> None:
    if size[0] >= 58:
        pytest.skip("values stand beside their errors")

    async def script(stage: Stage) -> None:
        await stage.settled()
        assert stage.lab.theory is not None
        column, exact = stage.measurement.columns[0], stage.lab.theory.prediction.columns[0]
        entropy = column.measured["entropy"]
        for wanted in (
            aligned(entropy.value, UNICODE),
            f"±{error(entropy.stderr, UNICODE)}",
            aligned(exact.values["entropy"], UNICODE),
        ):
            row = next(line for line in stage.part(stage.table) if line[1:].startswith("entropy"))
            assert wanted.strip() in row
            await stage.press("t")
            await stage.still()

    play(script, size=size)


@every_narrow_size
def test_v_goes_through_table_all_histograms_and_fields_and_back(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        first, seen = stage.text, ""
        for _ in range(8):
            await stage.press("v")
            await stage.still()
            if stage.text == first:
                break
            seen += stage.text
            if stage.panel.has_focus:
                await stage.press("right")
                assert stage.asked.d_k == 65
                await stage.press("left")
                await stage.settled()
        assert stage.text == first
        assert stage.app.focused is stage.lab
        assert all(title in seen for title in TITLES.values())
        assert "queries" in seen

    play(script, size=size)


@every_narrow_size
def test_leaving_the_fields_shows_the_results_again(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.text
        await stage.press("tab", "up")
        await stage.settled()
        assert not stage.table.size
        await stage.press("down", "escape")
        await stage.settled()
        assert stage.text == before

    play(script, size=size)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (200, 60)])
def test_table_and_all_histograms_are_there_at_once(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        assert "max weight" in stage.text
        assert "std of q" in stage.text
        for name in pair_names(stage.measurement.columns)[:4]:
            assert TITLES[name] in stage.text

    play(script, size=size)


@every_size
def test_what_the_table_leaves_out_is_said(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        shown = stage.part(stage.table)
        rows = [s for s in STATISTICS if stage.measurement.columns[0].measured[s.name].value is not None]
        missing = [s for s in rows if not any(line[1:].startswith(f"{s.label} ") for line in shown)]
        said = [int(line.split()[0]) for line in shown if " more" in line and "Tab" in line]
        assert bool(said) == bool(missing)
        assert all(abs(number - len(missing)) <= 1 for number in said)  # the freezing gauge is a row as well

    play(script, size=size)


@every_narrow_size
def test_a_sentence_that_is_cut_ends_in_dots(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.screen.set_focus(stage.table)
        for _ in STATISTICS:
            await stage.still()
            said = stage.words(stage.lab.results.words)
            statistic = stage.table.statistic
            assert statistic is not None
            assert said.endswith((" …", f"Source: {statistic.source}."))
            await stage.press("down")

    play(script, Parameters(d_k=64, n_keys=16, n_queries=8, batch=2), size=size)


# Capture and Claims


@every_narrow_size
def test_the_map_and_the_chosen_head_take_turns(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, "Capture")
        pane, first = stage.pane, stage.text
        assert "by head" in first or "part of" in first
        assert not pane.results.size
        seen = ""
        for _ in range(6):
            await stage.press("v")
            await stage.still()
            if stage.text == first:
                break
            seen += stage.text
            await stage.press("right")
            await stage.until(lambda: pane.map.cursor == (0, 1))
            await stage.press("left")
            await stage.until(lambda: pane.map.cursor == (0, 0) and not pane.results._stale)
            await stage.still()
        assert stage.text == first
        assert all(title in seen for title in TITLES.values() if "∂" not in title)
        assert "effective keys" in seen

    play(script, size=size)


@every_size
def test_every_head_is_seen_under_the_cursor_and_the_file_is_read_to_its_end(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, "Capture")
        pane = stage.pane
        if size[1] <= 15:
            assert ", part" in stage.part(pane.map)[0]
        for key in [*["right"] * 11, *["down"] * 5]:
            await stage.press(key)
            await stage.still()
            region = pane.map.region
            strips = stage.app.screen._compositor.render_strips()[region.y : region.bottom]
            looks = [s for strip in strips for s in strip if s.style and s.style.reverse and s.text.strip()]
            assert len(looks) == 1, key
        seen = stage.words(pane.map)
        for _ in range(9):
            await stage.press("pagedown")
            await stage.still()
            seen += stage.words(pane.map)
        assert pane.map.capture is not None
        assert "layer 5 · head 11" in seen
        assert pane.map.capture.path.name in seen.replace(" ", "")
        assert "more lines" not in stage.words(pane.map)

    play(script, size=size)


@every_size
def test_every_claim_is_reached_and_read_to_its_end(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, "Claims")
        pane = stage.app.panes["Claims"]
        assert isinstance(pane, ClaimsPane)
        await stage.until(lambda: len(pane.claims.outcomes) == len(CLAIMS))
        for number, claim in enumerate(CLAIMS[:2]):
            await stage.still()
            assert any(claim.id in line and line.startswith("▌") for line in stage.part(pane.claims))
            seen: list[str] = []
            for _ in range(9):
                await stage.press("pagedown")
                await stage.still()
                seen += [line.strip() for line in stage.part(pane.text)]
            lines = claim_lines(claim, pane.claims.outcomes[claim.id], pane.text.size.width - 1, UNICODE)
            last = "".join(text for text, _ in lines[-1]).strip()
            assert last in seen, number
            if size[0] < NARROW:
                await stage.press("v")
            await stage.press("down")

    play(script, size=size)


# Help


@pytest.mark.parametrize("size", [(40, 12), (60, 20)])
@pytest.mark.parametrize("key", ["?", "K"])
def test_help_and_the_overview_are_read_to_their_end(size: tuple[int, int], key: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press(key)
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        for _ in range(40):
            await stage.press("pagedown")
        await stage.still()
        assert_whole(stage, size)
        assert "Esc closes" in stage.text
        width = stage.app.screen.query_one(HelpText).region.width
        assert width >= LEAST[0]
        await stage.press("escape")
        await stage.until(lambda: not isinstance(stage.app.screen, HelpScreen))

    play(script, size=size)

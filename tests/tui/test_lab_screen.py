"""The screen of the Lab: its pictures, the table with its theory, the row with the cursor, and progress."""

import math
import re
from collections.abc import Iterable

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.request import Progress
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.panes import stepping
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.numbers import aligned, short
from attn_tui.tui.views.page import large
from stage import Stage, play, played
from textual.geometry import Region, Size
from textual.widget import Widget

SHOWN = [each for each in STATISTICS if not each.conditional and not each.exported_only]


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (100, 30), (120, 40), (200, 60)])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@played(settled=True)
async def test_the_page_shows_logits_a_row_and_saturation_below_d_k_in_large_digits(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs
) -> None:
    assert [len(line) for line in stage.lines] == [size[0]] * size[1]
    assert any(large("64", size[1] >= 40 and size[0] >= 100, glyphs)[0] in line for line in stage.lines)
    assert (glyphs.say("q·k ÷ √d_k") in stage.text) or (glyphs.ascii and size[0] < 80)
    for words in ("unscaled", "saturated", "healthy", "Unscaled, one key takes most of a row"):
        assert glyphs.say(words) in stage.text
    for title in ("logits", "a row of attention", "does softmax saturate?") if size[1] >= 24 else ():
        assert title in stage.text
    assert ("entropy over d_k" in stage.text) == (size[1] >= 40)
    assert any(bar in stage.text for bar in glyphs.bars[1:])
    assert stage.text.isascii() == glyphs.ascii


@played(size=(120, 40), parameters=Parameters(d_k=9, n_queries=16, batch=4), settled=True)
async def test_no_word_of_the_page_moves_from_9_to_10_or_to_16384(stage: Stage) -> None:
    """Statuses change, and so may sentences; all words before them stay where they are."""
    places: list[dict[str, int]] = []
    words = ("spread", "keys matter", "softmax( q·k )", "128 keys", "logits", "uniform")
    for d_k in (9, 10, 16_384):
        stage.lab.set_value("d_k", d_k)
        await stage.settled()
        places.append({word: stage.text.index(word) for word in words})
    assert places[0] == places[1] == places[2]


@pytest.mark.parametrize("size", [(120, 54), (200, 60)])
@played(settled=True)
async def test_large_screens_show_every_statistic_beside_its_theory(stage: Stage, size: tuple[int, int]) -> None:
    await stage.press("v")
    shown = stage.part(stage.table)
    for statistic in SHOWN:
        assert any(line[1:].startswith(statistic.short_label) for line in shown), statistic.name
    assert shown[0].count("theory") == 2
    row = next(line for line in shown if line.split()[0] == "entropy")
    assert aligned(stage.theory.prediction.columns[0].values["entropy"], UNICODE).strip() in row


@played(size=(200, 40), settled=True)
async def test_the_top_bar_the_column_titles_and_the_key_bar_agree_with_the_parameters(stage: Stage) -> None:
    assert stage.lines[0].rstrip().endswith("16 keys")
    assert "queries 8 · batch 2" in stage.text
    await stage.press("v")
    multiplier = short(stage.measurement.columns[1].multiplier, UNICODE)
    assert f"× {multiplier} (1/√d_k)" in stage.part(stage.table)[0]
    assert "? help" in stage.lines[-1]


@played(size=(80, 24), settled=True)
async def test_i_swaps_standard_errors_for_theory_if_both_do_not_fit(stage: Stage) -> None:
    await stage.press("v")
    before = stage.part(stage.table)
    assert all("±" in line for line in before if line.startswith((" entropy", " max weight")))
    assert "theory" not in before[0]
    await stage.press("i")
    swapped = stage.part(stage.table)
    assert "theory" in swapped[0]
    assert not any("±" in line for line in swapped[1:-1])
    await stage.press("i")
    assert stage.part(stage.table) == before


@played(settled=True)
async def test_v_shows_all_numbers_then_the_histograms_and_keys_work_in_each(stage: Stage) -> None:
    page = stage.text
    assert "row entropy" not in page
    seen: list[tuple[bool, bool]] = []
    for _ in range(3):
        await stage.press("v")
        results = stage.lab.results
        seen.append((bool(results.table.size), bool(results.histograms.size)))
        assert ("entropy / ln n" in stage.text) == (seen[-1] == (True, False))
        assert ("row entropy" in stage.text) == (seen[-1] == (False, True))
    assert seen == [(True, False), (False, True), (False, False)]
    assert stage.text == page
    stage.app.screen.set_focus(stage.table)
    await stage.still()
    await stage.press("v")
    assert not stage.table.size
    await stage.press("up")
    assert stage.asked.d_k == 128
    await stage.press("v", "v")
    assert stage.table.size


@played(size=(200, 60), settled=True)
async def test_on_a_wide_screen_all_numbers_stand_beside_the_page(stage: Stage) -> None:
    await stage.press("v")
    assert "does softmax saturate?" in stage.text
    assert "entropy / ln n" in stage.text


def test_what_was_opened_is_open_in_the_next_run() -> None:
    async def open_all(stage: Stage) -> None:
        await stage.settled()
        await stage.press("p", "v")

    saved = play(open_all).panes["Lab"].saved_settings
    assert saved == {"all_parameters": True, "all_statistics": True}

    async def look(stage: Stage) -> None:
        await stage.settled()
        assert stage.panel.size
        assert stage.table.size
        assert not stage.lab.results.histograms.size
        assert stage.lab.saved_settings == {}
        await stage.press("v")
        assert stage.lab.saved_settings == {"all_statistics": False}

    play(look, settings=Settings(**saved))


@played(settled=True)
async def test_the_row_with_the_cursor_is_explained_under_the_table(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.table)
    for statistic in SHOWN:
        await stage.still()
        (marked,) = (line for line in stage.part(stage.table) if line.startswith("▌"))
        assert marked[1:].startswith(statistic.short_label)
        assert stage.words(stage.lab.results.words).startswith(f"{statistic.label}: ")
        await stage.press("down")
    await stage.press("escape")
    assert stage.words(stage.lab.results.words).startswith("Unscaled")
    assert not any(line.startswith("▌") for line in stage.part(stage.table))


@played(size=(80, 20), settled=True)
async def test_every_row_can_be_reached_on_a_low_screen(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.table)
    reached: set[str] = set()
    for key in [*["pageup"] * 4, *["down"] * len(SHOWN), *["up"] * len(SHOWN)]:
        await stage.press(key)
        (marked,) = (line for line in stage.part(stage.table) if line.startswith("▌"))
        assert stage.table.statistic is not None
        assert marked[1:].startswith(stage.table.statistic.short_label), key
        reached.add(stage.table.statistic.name)
    assert reached >= {statistic.name for statistic in SHOWN if not statistic.optional}


@pytest.mark.slow
@played(Parameters(d_k=8, n_keys=128, n_queries=128, batch=4_096))
async def test_long_work_shows_progress_and_early_results_and_is_replaced_by_the_next_request(stage: Stage) -> None:
    long = Parameters(d_k=8, n_keys=128, n_queries=128, batch=4_096)
    await stage.until(lambda: "computing" in stage.lines[0], "progress")
    await stage.until(lambda: " of 4096 draws: " in stage.text, "an early result")
    assert not stage.measurement.complete
    for answer in (Progress(0.5), stage.lab.answer):
        stage.lab.show_answer(Measure(long), answer)
        assert (stage.lab.progress is None, stage.lab.results.why_stale) == (False, "")
    stage.send("p", *["tab"] * 4, "2", "enter", "escape")
    await stage.settled()
    assert stage.asked.batch == 2
    assert "draws: " not in stage.text
    assert "computing" not in stage.text


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (116, 30), (118, 40), (122, 40)], ids=str)
@pytest.mark.parametrize("rule", ["sqrt_d_k", "inverse_layer"])
@played(parameters=Parameters(n_queries=16, batch=4), settled=True)
async def test_the_sentence_of_the_page_is_whole(stage: Stage, size: tuple[int, int], rule: str) -> None:
    stage.lab.set_value("scale", rule)
    await stage.answered()
    assert "Unscaled, one key takes most" in stage.text
    assert "…" not in stage.text


@played(size=(120, 40), parameters=Parameters(d_k=4, n_queries=16, batch=4), settled=True)
async def test_as_d_k_grows_unscaled_logits_spread_on_an_axis_that_does_not_move_and_scaled_ones_do_not(
    stage: Stage,
) -> None:
    widths: list[list[int]] = []
    axes: set[str] = set()
    for d_k in (4, 16, 64, 256, 512):
        stage.lab.set_value("d_k", d_k)
        await stage.settled()
        lines = [line for line in stage.lines if "spread" in line[93:]]
        axes |= {*re.findall("−[0-9]+ ─", stage.text)}
        widths.append([sum(sign != " " for sign in line[13:93]) for line in lines])
    unscaled, scaled = zip(*widths, strict=True)
    assert len(axes) == 1
    assert [*unscaled] == sorted(unscaled)
    assert len({*unscaled}) > 3
    assert max(scaled) - min(scaled) <= 4


@played(parameters=Parameters(d_k=4, n_queries=2, n_keys=4, batch=2), settled=True)
async def test_an_arrow_steps_by_one_and_soon_by_a_tenth_while_it_is_held(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)
    for _ in range(stepping.SLOW):
        await stage.press("right")
        await stage.answered()
    assert stage.asked.d_k == 4 + stepping.SLOW
    for _ in range(25):
        await stage.press("right")
        await stage.answered()
    assert 100 < stage.asked.d_k < 300
    before = stage.asked.d_k
    await stage.press("left")
    assert stage.asked.d_k == before - 1
    monkeypatch.setattr(stepping, "HELD", 0)
    await stage.press(*["right"] * 20)
    assert stage.asked.d_k == before + 19


@played(settled=True)
async def test_the_lab_shown_again_never_arranges_itself_as_on_a_narrow_screen(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow: list[bool] = []
    regions = LabPane.regions

    def noted(pane: LabPane, size: Size) -> Iterable[tuple[Widget, Region]]:
        narrow.append(pane.one_at_a_time)
        return regions(pane, size)

    await stage.press(">")
    monkeypatch.setattr(LabPane, "regions", noted)
    await stage.press("<")
    await stage.at_rest()
    assert narrow
    assert not any(narrow)


@played(settled=True)
async def test_the_histogram_shows_what_was_there_before_a_held_key(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def earlier(*keys: str) -> float | None:
        await stage.press(*keys)
        await stage.at_rest()
        columns = stage.lab.results.histograms.earlier
        return columns[0].measured["logit_std"].value if columns else None

    assert not stage.lab.results.histograms.earlier
    at_first = stage.lab.results.histograms.columns[0].measured["logit_std"].value
    assert await earlier("up", "up", "up") == at_first
    monkeypatch.setattr("attn_tui.tui.panes.lab.pane.REST", -1.0)  # the key was released
    last = stage.lab.results.histograms.columns[0].measured["logit_std"].value
    assert await earlier("up") == last


@played(parameters=Parameters(d_k=128, n_queries=2, n_keys=4, batch=2), settled=True)
async def test_a_held_key_stops_once_at_512_and_goes_on_when_it_is_pressed_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)
    for _ in range(3):
        await stage.press("up")
        await stage.answered()
    assert stage.asked.d_k == 512
    assert "stops here" in stage.text
    monkeypatch.setattr(stepping, "HELD", 0)
    await stage.press("right")
    assert stage.asked.d_k == 513


@played(parameters=Parameters(d_k=64, n_queries=2, n_keys=4, batch=2), settled=True)
async def test_a_held_step_waits_for_the_picture_of_the_one_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)
    monkeypatch.setattr(LabPane, "is_current", False)
    for _ in range(stepping.HOLD + 5):
        stage.lab.action_d_k(1)
    assert stage.asked.d_k == 64 + stepping.HOLD

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
from attn_tui.tui.views.fields.panel import leading
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.numbers import aligned, short
from attn_tui.tui.views.plots.histograms import TITLES, pair_names
from attn_tui.tui.views.results.table import EXPORTED_ONLY
from stage import SMALL, Stage, play, played
from textual.geometry import Region, Size
from textual.widget import Widget

SHOWN = [each for each in STATISTICS if not each.conditional and each.name not in EXPORTED_ONLY]


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@played(settled=True)
async def test_fields_table_and_histograms_share_the_screen(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs
) -> None:
    assert [len(line) for line in stage.lines] == [size[0]] * size[1]
    for words in (" Lab ", "unscaled × 1", "entropy", "max weight", "dead rows", "Unscaled, "):
        assert glyphs.say(words) in stage.text
    histograms = "\n".join(stage.part(stage.lab.results.histograms))
    for name in pair_names(stage.measurement.columns)[: 2 if size[0] >= 120 else 1]:
        assert glyphs.say(TITLES[name]) in histograms
    assert any(bar in histograms for bar in glyphs.bars[1:])
    for field in leading(SMALL) if size[0] >= 120 else ():
        assert any(line.split()[:1] == field.label.split()[:1] for line in stage.part(stage.panel))
    assert stage.text.isascii() == glyphs.ascii


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
    assert stage.lines[0].rstrip().endswith("d_k 64 as in the Transformer, BERT, GPT-2 · 16 keys · seed 0")
    multiplier = short(stage.measurement.columns[1].multiplier, UNICODE)
    assert f"× {multiplier} (1/√d_k)" in stage.part(stage.table)[0]
    assert "? help" in stage.lines[-1]


@played(size=(80, 24), settled=True)
async def test_i_swaps_standard_errors_for_theory_if_both_do_not_fit(stage: Stage) -> None:
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
async def test_v_shows_the_table_the_histograms_or_both_and_keys_work_without_the_table(stage: Stage) -> None:
    both = stage.text
    assert "row entropy" not in "\n".join(stage.part(stage.lab.results.histograms)[:4])
    seen: list[tuple[bool, bool]] = []
    for _ in range(3):
        await stage.press("v")
        results = stage.lab.results
        seen.append((bool(results.table.size), bool(results.histograms.size)))
        assert ("entropy / ln n" in stage.text) == (seen[-1] == (True, False))
        assert "row entropy" in stage.text or seen[-1] != (False, True)
    assert seen == [(True, False), (False, True), (True, True)]
    assert stage.text == both
    stage.app.screen.set_focus(stage.table)
    await stage.press("v", "v")
    assert not stage.table.size
    await stage.press("up")
    assert stage.asked.d_k == 128
    await stage.press("v")
    assert stage.table.size


def test_what_was_opened_is_open_in_the_next_run() -> None:
    async def open_all(stage: Stage) -> None:
        await stage.settled()
        await stage.press("p", "v")

    saved = play(open_all).panes["Lab"].saved_settings
    assert saved == {"all_parameters": True, "all_statistics": True}

    async def look(stage: Stage) -> None:
        await stage.settled()
        assert stage.panel.whole
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
    await stage.until(lambda: " of 4096 draws: " in stage.words(stage.lab.results.words), "an early result")
    assert not stage.measurement.complete
    for answer in (Progress(0.5), stage.lab.answer):
        stage.lab.show_answer(Measure(long), answer)
        assert (stage.lab.progress is None, stage.lab.results.why_stale) == (False, "")
    stage.send("p", *["tab"] * 5, "2", "enter", "escape")
    await stage.settled()
    assert stage.asked.batch == 2
    assert "draws: " not in stage.words(stage.lab.results.words)
    assert "computing" not in stage.text


@pytest.mark.parametrize("size", [(115, 36), (116, 30), (118, 40), (120, 40), (122, 40)], ids=str)
@pytest.mark.parametrize("rule", ["sqrt_d_k", "inverse_layer"])
@played(parameters=Parameters(n_queries=16, batch=4), settled=True)
async def test_the_sentence_is_whole_beside_the_panel(stage: Stage, size: tuple[int, int], rule: str) -> None:
    stage.lab.set_value("scale", rule)
    await stage.answered()
    said = stage.words(stage.lab.results.words)
    assert said.startswith("Unscaled, ")
    assert said.endswith(".")
    assert "…" not in said


@played(size=(120, 40), parameters=Parameters(d_k=4, n_queries=16, batch=4), settled=True)
async def test_as_d_k_grows_unscaled_logits_spread_on_an_axis_that_does_not_move_and_scaled_ones_do_not(
    stage: Stage,
) -> None:
    widths: list[list[int]] = []
    axes: set[str] = set()
    for d_k in (4, 16, 64, 256):
        stage.lab.set_value("d_k", d_k)
        await stage.settled()
        lines = stage.part(stage.lab.results.histograms)
        axes |= {*re.findall("−[0-9]+ ─", "".join(lines))}
        widths.append([sum(sign != " " for sign in line[12:52]) for line in lines if "scaled" in line[:12]])
    unscaled, scaled = zip(*widths, strict=True)
    assert len(axes) == 1
    assert [*unscaled] == sorted({*unscaled})
    assert max(scaled) - min(scaled) <= 2


@played(parameters=Parameters(d_k=4, n_queries=2, n_keys=4, batch=2), settled=True)
async def test_an_arrow_steps_by_one_and_soon_by_a_tenth_while_it_is_held(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)
    await stage.press(*["right"] * stepping.SLOW)
    assert stage.asked.d_k == 4 + stepping.SLOW
    await stage.press(*["right"] * 25)
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

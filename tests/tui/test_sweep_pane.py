"""The Sweep pane as people use it: a curve appears, a cursor walks on it, the Lab follows."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab import sweep
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.theory import predict
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTIC
from attn_tui.tui.messages import SweepPart
from attn_tui.tui.panes.sweep import GRIDS, SweepPane
from attn_tui.tui.views.glyphs import ASCII, Glyphs
from attn_tui.tui.widgets.help_screen import HelpScreen
from test_app import SIZES, SMALL, Stage, numbers, play

LANDMARKS = [16, 32, 64, 80, 96, 128, 192, 256, 512, 576, 1024, 2048, 4096]
SHORT = "1:64:log6,16,32,64"  # a grid that is quick


@pytest.fixture(autouse=True)
def short_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first grid is short, so that tests are; the others are as they are."""
    monkeypatch.setattr("attn_tui.tui.panes.sweep.GRIDS", (replace(GRIDS[0], text=SHORT), *GRIDS[1:]))


async def complete(stage: Stage) -> SweepPane:
    """The pane, with everything on it that was asked for."""
    pane = await stage.opened(SweepPane)
    await stage.until(lambda: is_complete(pane), "the sweep")
    await stage.still()
    return pane


def is_complete(pane: SweepPane) -> bool:
    swept, (d_k, here) = pane.swept, pane.plot.reading
    return (
        replace(swept.question, d_k=pane.parameters.d_k) == pane.parameters
        and swept is pane._sweeps[pane.grid][1]
        and set(swept.d_ks) <= set(swept.points)
        and bool(swept.exact)
        and d_k == pane.parameters.d_k
        and here is not None
        and bool(here.theory)
        and pane.progress is None
    )


def plotted(stage: Stage, pane: SweepPane) -> str:
    return "\n".join(stage.part(pane.plot)[3:-2])


class Requests:
    """What the pane has begun to sweep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Parameters, tuple[int, ...]]] = []
        real = sweep.stream

        def stream(question: Parameters, d_ks: Sequence[int], **others: Any) -> Iterator[sweep.Step]:
            self.asked.append((question, tuple(d_ks)))
            yield from real(question, d_ks, **others)

        monkeypatch.setattr(sweep, "stream", stream)


def test_every_point_of_the_grid_is_measured_beside_its_exact_value() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for d_k in pane.swept.d_ks:
            contents = pane.swept.points[d_k].contents
            alone = run(replace(SMALL, d_k=d_k))
            exact = predict(replace(SMALL, d_k=d_k))
            for index in (0, 1):
                measured = contents.columns[index].measured["entropy"]
                assert measured.value == pytest.approx(alone.columns[index].measured["entropy"].value, rel=1e-4)
                assert contents.theory[index].values == exact.columns[index].values
        text = plotted(stage, pane)
        assert text.count("◈") + text.count("●") >= 6
        assert text.count("◈") + text.count("◆") >= 6
        assert any(0x2800 < ord(sign) < 0x2900 for sign in text)

    play(script)


def test_the_reading_says_what_the_lab_measures_there() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await complete(stage)
        await stage.press("right")
        pane = await complete(stage)
        unscaled, scaled = stage.part(pane.plot)[1:3]
        expected, exact = run(replace(SMALL, d_k=65)), predict(replace(SMALL, d_k=65))
        for line, column, theory in zip((unscaled, scaled), expected.columns, exact.columns, strict=True):
            measured, found = column.measured["entropy"].value, [float(n) for n in re.findall(r"\d+\.\d{2,}", line)]
            assert measured is not None
            assert any(number == pytest.approx(measured, rel=2e-3) for number in found)
            assert any(number == pytest.approx(theory.values["entropy"], rel=2e-3) for number in found)
        assert "d_k 65" in unscaled
        assert "unscaled × 1" in unscaled
        assert "scaled × 0.124" in scaled

    play(script)


@pytest.mark.parametrize(
    ("keys", "d_ks"),
    [
        (["right", "l", "left", "h"], [65, 66, 65, 64]),
        (["up", "k", "down", "j"], [128, 256, 128, 64]),
        (["pageup", "pageup", "pagedown"], [80, 96, 80]),
    ],
)
def test_keys_move_the_cursor_and_the_lab_follows(keys: list[str], d_ks: list[int]) -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for key, d_k in zip(keys, d_ks, strict=True):
            await stage.press(key)
            assert (pane.parameters.d_k, stage.asked.d_k, pane.plot.cursor) == (d_k, d_k, d_k)
        await stage.press("less_than_sign")
        assert stage.app.active == "Lab"
        await stage.settled()
        assert stage.measurement.subject == replace(SMALL, d_k=d_ks[-1])

    play(script)


def test_keys_in_a_burst_each_start_from_the_one_before() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        stage.send(*["right"] * 40, *["up"] * 2, "s", *["left"] * 7, "]")
        await stage.until(lambda: stage.asked.n_keys == 32, "the last key")
        assert stage.asked == pane.parameters == replace(SMALL, d_k=249, scale=stage.asked.scale, n_keys=32)
        assert stage.asked.scale != SMALL.scale
        await stage.until(lambda: is_complete(pane))

    play(script)


def test_at_a_bound_the_cursor_stops() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("left", "left", "down")
        assert pane.parameters.d_k == 1

    play(script, replace(SMALL, d_k=3))


def test_moving_the_cursor_sweeps_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests(monkeypatch)

    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("right", "up", "m", "m", "M", "a", "v", "v", "v")
        stage.app.action_pane("Lab")
        await stage.press("left")
        stage.app.action_pane("Sweep")
        await stage.answered()
        assert pane.parameters == replace(SMALL, d_k=127)
        await stage.until(lambda: is_complete(pane))

    play(script)
    assert requests.asked == [(replace(SMALL, d_k=64), requests.asked[0][1])]


def test_another_grid_is_another_sweep_and_the_one_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests(monkeypatch)

    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("g")
        await stage.until(lambda: is_complete(pane))
        assert pane.swept.d_ks[-1] == 512
        await stage.press("G")
        assert is_complete(pane)
        assert pane.swept.d_ks[-1] == 64

    play(script)
    assert [d_ks[-1] for _, d_ks in requests.asked] == [64, 512]


@pytest.mark.parametrize("key", ["]", "[", "s", "S", "c", "x", "r"])
def test_another_question_is_swept_anew_and_the_lab_gets_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests(monkeypatch)

    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press(key)
        assert stage.asked != SMALL
        await stage.until(lambda: is_complete(pane))
        assert pane.swept.question == replace(stage.asked, d_k=64)
        await stage.press("enter")
        assert stage.app.active == "Lab"
        await stage.settled()

    app = play(script)
    assert requests.asked[-1][0] == replace(app.parameters, d_k=64)
    assert len(requests.asked) == 2


def test_points_appear_while_the_rest_is_being_measured_and_a_new_question_drops_the_old_one() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        kept: list[SweepPart] = []
        through = pane.deliver
        pane.deliver = lambda message: kept.append(message) if isinstance(message, SweepPart) else through(message)  # type: ignore[method-assign]
        stage.send("r")
        await stage.until(lambda: kept and (kept[-1].sweep.question.seed, kept[-1].fraction) == (1, 1), "the sweep")
        first, last = kept[0].sweep, kept[-1].sweep
        points = {d_k: point for part in kept if part.sweep is last for d_k, point in part.points.items()}
        known = dict(list(points.items())[:3])
        through(SweepPart("sweep", last, known, 0.4))
        await stage.until(lambda: pane.progress == 0.4)
        await stage.still()
        assert pane.swept.points == known
        assert "computing" in stage.lines[0]
        assert "40 %" in stage.lines[0]
        if first is not last:
            through(SweepPart("sweep", first, {}, 0.9))  # late, of the question before
            await stage.answered()
            assert pane.progress == 0.4
        pane.deliver = through  # type: ignore[method-assign]
        stage.send("r")
        await stage.until(lambda: is_complete(pane))
        assert pane.swept.question.seed == 2

    play(script)


def test_a_sweep_that_was_left_off_is_gone_on_with_and_has_the_points_of_one_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = Requests(monkeypatch)

    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        for _ in range(12):
            await stage.press("greater_than_sign", "less_than_sign")
        await stage.until(lambda: is_complete(pane))
        for point in sweep.sweep(replace(SMALL, d_k=64), pane.swept.d_ks):
            mine = pane.swept.points[point.parameters.d_k].point
            assert numbers(mine.measurement) == numbers(point.measurement)

    play(script)
    assert len(requests.asked) == 2  # the pane's, and the test's own


def test_a_heavy_sweep_leaves_the_keys_alone_and_is_dropped_when_the_pane_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attn_tui.tui.panes.sweep.GRIDS", GRIDS)
    heavy = replace(SMALL, n_keys=8192, n_queries=64, batch=2)

    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        await stage.until(lambda: pane.swept.points, "the first points")
        await stage.press("right", "right")
        assert pane.parameters.d_k == 66
        stage.app.action_pane("Lab")
        await stage.until(lambda: pane.progress is None, "the end of the sweep")
        assert set(pane.swept.points) < set(pane.swept.d_ks)
        known = dict(pane.swept.points)
        stage.app.action_pane("Sweep")
        await stage.answered()
        assert dict(pane.swept.points).items() >= known.items()
        await stage.press("[")

    play(script, heavy)


def test_m_goes_through_all_statistics_and_back() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        seen = []
        for _ in ALWAYS:
            seen.append(pane.plot.statistic)
            assert stage.part(pane.plot)[0].strip().startswith(pane.plot.statistic.label)
            assert pane.plot.statistic.definition.split()[0] in stage.words(pane.words)
            await stage.press("m")
        assert set(seen) == set(ALWAYS)
        assert pane.plot.statistic is seen[0] is STATISTIC["entropy"]
        await stage.press("M")
        assert pane.plot.statistic is seen[-1]

    play(script)


def test_a_swaps_a_logarithmic_axis_and_a_linear_one() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        pane.plot.statistic = STATISTIC["logit_variance"]
        await stage.press("a")
        assert "log axis" not in stage.part(pane.plot)[0]
        await stage.press("a")
        assert "log axis" in stage.part(pane.plot)[0]
        labels = [line.split("┤")[0].strip() for line in stage.part(pane.plot)[3:-2]]
        assert {"1", "10"} <= set(labels)

    play(script)


def test_the_table_has_a_row_for_each_landmark_and_marks_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attn_tui.tui.panes.sweep.GRIDS", GRIDS)

    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        rows = stage.part(pane.table)[1:]
        assert [int(row.lstrip("▌").split()[0]) for row in rows] == LANDMARKS
        assert [row.startswith("▌") for row in rows].index(True) == LANDMARKS.index(64)
        assert all(set(row) & set("▁▂▃▄▅▆▇") for row in rows)
        await stage.press("right")
        assert not any(row.startswith("▌") for row in stage.part(pane.table))

    play(script)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [None, ASCII])
def test_the_pane_fits_every_size_in_both_characters(size: tuple[int, int], glyphs: Glyphs | None) -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for d_k in (4096, 1, 64):
            stage.app.panes["Sweep"].action_d_k(d_k - pane.parameters.d_k)  # type: ignore[attr-defined]
        await stage.until(lambda: is_complete(pane))
        await stage.still()
        assert len(stage.part(pane.plot)) >= 12
        assert len(stage.part(pane.table)) >= 4
        assert all(len(line) == size[0] for line in stage.lines)
        assert stage.text.isascii() or glyphs is None
        assert "64" in stage.part(pane.plot)[-1]

    play(script, size=size, **({} if glyphs is None else {"glyphs": glyphs}))


def test_v_shows_the_plot_the_table_or_both() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        shown = []
        for _ in range(4):
            shown.append((pane.plot.display, pane.table.display))
            await stage.press("v")
        assert shown == [(True, True), (True, False), (False, True), (True, True)]

    play(script)


def test_resizing_keeps_the_picture_whole() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for size in [(90, 22), (200, 60), (40, 12), (80, 24)]:
            await stage.resize(*size)
        await stage.still()
        assert plotted(stage, pane).count("●") + plotted(stage, pane).count("◈") >= 6
        assert "64" in stage.part(pane.plot)[-1]

    play(script)


def test_a_rule_without_a_value_says_so_and_leaves_its_d_k_out() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        while pane.parameters.scale != "log_d_k":
            await stage.press("s")
        assert "scale 1/ln d_k has no value" in stage.words(pane.words)
        await stage.until(lambda: pane.swept.question.scale == "log_d_k" and pane.progress is None)
        assert pane.swept.d_ks[0] == 2
        await stage.press("right")
        await stage.until(lambda: is_complete(pane))
        assert "has no value" not in stage.words(pane.words)

    play(script, replace(SMALL, d_k=1))


def test_a_cursor_beyond_the_grid_is_said() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        assert "d_k 100 is outside" in stage.words(pane.words)
        assert "▸" in stage.part(pane.plot)[-2]

    play(script, replace(SMALL, d_k=100))


def test_without_an_exact_value_it_is_said() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        assert "No exact value" in stage.words(pane.words)
        assert not any(0x2800 < ord(sign) < 0x2900 for sign in plotted(stage, pane))

    play(script, replace(SMALL, components="uniform"))


def test_a_click_moves_the_cursor_there() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        labels = stage.part(pane.plot)[-1]
        await stage.pilot.click(pane.plot, offset=(labels.index("16"), 10))
        await stage.answered()
        assert 14 <= pane.parameters.d_k <= 18
        assert stage.asked.d_k == pane.parameters.d_k

    play(script)


def test_help_is_about_the_statistic_and_the_pane() -> None:
    async def script(stage: Stage) -> None:
        await complete(stage)
        await stage.press("?")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        await stage.still()
        assert "entropy" in stage.text
        assert "One statistic over d_k" in stage.text

    play(script, size=(120, 40))


def test_hidden_it_paints_nothing() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        stage.app.action_pane("Lab")
        await stage.settled()
        before = stage.text
        assert pane._current is not None
        pane.on_sweep_part(SweepPart("sweep", pane._current, {}, 0.5))
        await asyncio.sleep(0.05)
        await stage.answered()
        assert stage.text == before

    play(script)

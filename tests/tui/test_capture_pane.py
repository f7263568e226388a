"""The Capture pane: the map of all heads, the selected head, and files that are broken, changed or removed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import Hints, Layer
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.parameters import FIELD
from attn_tui.core.questions.request import Cache
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTIC
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import (
    ComparedHeads,
    CompareHeads,
    HeadStatistics,
    MeasureHead,
    MeasureHeads,
    OpenCapture,
)
from attn_tui.tui.panes.capture.sides import Sides
from cases import for_each, present
from stage import SIZES, SMALL, Script, Stage, capture_file, play, played, some_heads


def play_with(file: Path, script: Script, size: tuple[int, int] = (120, 40)) -> None:
    """Run a script against an app that was opened with this file."""
    play(script, size=size, first_pane="Capture", given={"file": OpenCapture(file)})


def layers_of(pane: CapturePane) -> Sequence[Layer]:
    """Return the layers of the open file."""
    return present(pane.heads.capture).layers


async def whole_map(stage: Stage) -> CapturePane:
    """Wait until every head is on the map."""
    pane = await stage.head()
    heads = sum(layer.heads for layer in layers_of(pane))
    await stage.until(lambda: len(pane.heads.measured) == heads, "the whole map")
    await stage.still()
    return pane


@played(size=(200, 40))
async def test_the_pane_opens_the_sample_and_maps_all_its_heads(stage: Stage) -> None:
    pane = await whole_map(stage)
    assert "layer 0 · head 0" in stage.text
    assert "MiniLM" in stage.lines[0]
    assert None not in pane.heads.measured.values()
    assert "σ in row / √(2 ln n), by head" in stage.text
    await stage.press("v")
    assert "from the file, × 0.177" in stage.part(pane.results.table)[0]
    assert "With the file's scale" in stage.words(pane.results.words)
    for title in ("logits", "row entropy"):
        assert title in "\n".join(stage.part(pane.results.histograms))


@played()
async def test_arrows_move_over_the_heads_and_stop_at_the_edges(stage: Stage) -> None:
    pane = await stage.head()
    for key, cursor in [
        ("right", (0, 1)), ("l", (0, 2)), ("left", (0, 1)), ("h", (0, 0)), ("left", (0, 0)), ("up", (0, 0)),
        ("down", (1, 0)), ("j", (2, 0)), ("up", (1, 0)), ("k", (0, 0)),
    ]:  # fmt: skip
        await stage.press(key)
        assert pane.heads.cursor == cursor, key
    await stage.press(*["right"] * 20, *["down"] * 20)
    layers = layers_of(pane)
    last = len(layers) - 1, layers[-1].heads - 1
    assert pane.heads.cursor == last
    await stage.until(lambda: "layer {} · head {}".format(*last) in stage.text)
    await stage.until(lambda: not pane.results.why_stale)


def subject(pane: CapturePane) -> tuple[int, int] | None:
    """Return the layer and the head that the numbers are of."""
    return pane.measurement and (pane.measurement.subject.layer.index, pane.measurement.subject.head)


@played()
async def test_the_numbers_are_those_of_the_head_with_the_cursor(stage: Stage) -> None:
    pane = await whole_map(stage)
    stage.send(*["right"] * 7, *["down"] * 3)
    await stage.until(lambda: pane.heads.cursor == (3, 7))
    wanted = present(pane.heads.measured[3, 7])
    await stage.until(lambda: pane.measurement is not None and subject(pane) == (3, 7), "the head")
    found = present(pane.measurement).columns[1].measured
    for name, estimate in wanted.items():  # measured together with another rule, or alone: in other blocks
        alike = None if estimate.value is None else pytest.approx(estimate.value, rel=1e-6, abs=1e-9)
        assert found[name].value == alike, name


@played()
async def test_shift_m_steps_the_statistic_of_the_map(stage: Stage) -> None:
    await whole_map(stage)
    first = STATISTIC["saturation"]
    for statistic in (*ALWAYS[ALWAYS.index(first) + 1 :], *ALWAYS[: ALWAYS.index(first) + 1]):
        await stage.press("M")
        await stage.until(lambda label=statistic.label: stage.lines[3].startswith(f" {label}"))


@played(size=(60, 24))
async def test_undo_and_the_focus_bring_their_part_of_a_narrow_screen_to_the_front(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press(*["v"] * 4)
    assert (pane.views.front, pane.views.chosen) == ("results", "statistics")
    await stage.press("u")
    assert (pane.views.front, pane.views.shown) == ("map", "attention")
    stage.app.screen.set_focus(pane.results.table)
    await stage.answered()
    assert pane.views.front == "results"


@pytest.mark.slow
@played(size=(80, 24))
async def test_i_chooses_the_statistic_of_the_map_and_the_rules_of_a_and_b_from_a_list(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press("i", "home")
    assert "what to show" in stage.text
    await stage.press(*"one-hot", "enter")
    assert pane.heads.statistic.name == "one_hot_rows"
    await stage.press("i", *"a: d_k", "enter")
    assert (pane.sides.against, pane.sides.b.scale) == ("d_k", "file")
    await stage.press("i", *"log(n)/sqrt(d)")
    assert "B: use this formula" in stage.text
    assert "A: use this formula" in stage.text
    await stage.press("enter")
    assert (pane.sides.against, pane.sides.b.scale) == ("d_k", "log(n)/sqrt(d)")
    await stage.until(lambda: pane.is_current)
    assert "--scale 'log(n)/sqrt(d)' --against d_k" in pane.command()
    await stage.press("u", "u", "u")
    assert (pane.sides.against, pane.sides.b.scale, pane.heads.statistic.name) == ("none", "file", "saturation")
    await stage.press("a")
    assert "or a formula" in stage.text
    await stage.press("escape", "m")
    assert "or a formula" not in stage.text


@played()
async def test_enter_opens_the_lab_with_the_shape_of_the_head(stage: Stage) -> None:
    await stage.head()
    await stage.press("enter")
    await stage.until(lambda: stage.app.active == "Lab")
    await stage.settled()
    assert stage.asked == replace(SMALL, d_k=32, n_keys=70, n_queries=70)
    assert stage.app.focused is stage.lab


def test_a_shape_beyond_the_lab_s_bounds_is_refused_with_a_reason(tmp_path: Path) -> None:
    high = int(FIELD["n_keys"].high)
    keys = np.ones((1, high + 1, 2), dtype=np.float32)
    file = capture_file(tmp_path, np.ones((1, 1, 2), dtype=np.float32), keys)

    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("enter")
        await stage.until(lambda: "The Lab cannot show this shape" in stage.text)
        assert str(high) in stage.text
        assert stage.app.active == "Capture"
        assert stage.asked == SMALL

    play_with(file, script)


# Files


def test_the_file_on_the_command_line_is_opened_at_once(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        assert stage.app.active == "Capture"
        pane = stage.pane(CapturePane)
        await stage.until(lambda: pane.heads.capture)
        await stage.still()
        assert "capture.npz" in stage.lines[0]
        assert stage.app.focused is pane
        assert layers_of(pane)[0].heads == 3

    play_with(capture_file(tmp_path, some_heads()), script)


def test_a_broken_file_is_reported_and_the_lab_still_works(tmp_path: Path) -> None:
    file = tmp_path / "broken.npz"
    file.write_bytes(b"PK\x03\x04 not much of an archive")

    async def script(stage: Stage) -> None:
        await stage.until(lambda: "broken.npz" in stage.text.replace("│", "").replace(" ", "").replace("\n", ""))
        for key in ("right", "down", "m", "s", "enter", "v", "tab", "?", "escape"):
            await stage.press(key)
        await stage.press("alt+1")
        await stage.settled()
        await stage.press("right")
        assert stage.asked.d_k == 65

    play_with(file, script)


@pytest.mark.parametrize("size", SIZES)
def test_the_whole_reason_for_refusing_a_file_is_shown(size: tuple[int, int], tmp_path: Path) -> None:
    folder = tmp_path / "captures of a model with a long name" / "evening run"
    folder.mkdir(parents=True)
    q = some_heads()
    q[0, 0, 0] = np.nan

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        end = "NaNorinfinite;allmustbefinite"  # a path may be broken anywhere
        await stage.until(lambda: end in stage.words(pane.results.words).replace(" ", ""), "the end of the reason")

    play_with(capture_file(folder, q), script, size)


def test_a_head_with_nan_is_marked_on_the_map_and_explained_when_it_is_selected(tmp_path: Path) -> None:
    q = some_heads()
    q[1, 2, 3] = np.nan

    async def script(stage: Stage) -> None:
        pane = await whole_map(stage)
        row = next(line for line in stage.part(pane.map) if "!" in line)
        assert [cell == "!" for cell in row.split()[1:4]] == [False, True, False]
        assert not pane.results.table.dimmed
        await stage.press("right")
        await stage.until(lambda: pane.results.table.dimmed and "NaN" in stage.words(pane.results.words))
        assert "".join(stage.part(pane.results.table)).strip() == ""  # and no numbers of another head
        await stage.press("right")
        await stage.until(lambda: not pane.results.table.dimmed)
        await stage.still()
        assert "NaN" not in stage.text

    play_with(capture_file(tmp_path, q), script)


def test_a_file_replaced_while_open_is_reported_and_can_be_reloaded(tmp_path: Path) -> None:
    file = capture_file(tmp_path, some_heads(heads=3, tokens=6, d_k=4))

    async def script(stage: Stage) -> None:
        pane = await whole_map(stage)
        capture_file(tmp_path, some_heads(heads=2, tokens=9, d_k=8, seed=1), name="other.npz").replace(file)
        await stage.press("right", "right")
        await stage.until(lambda: "changed" in stage.words(pane.results.words))
        assert pane.results.table.dimmed
        await stage.press("r")
        await stage.until(lambda: layers_of(pane)[0].d_k == 8)
        await stage.until(lambda: not pane.results.table.dimmed and len(pane.heads.measured) == 2)
        await stage.still()
        assert pane.heads.cursor == (0, 1), "the last head"
        assert "9 queries" in stage.words(pane.map)
        assert "changed" not in stage.text

    play_with(file, script)


def test_a_removed_file_is_reported_and_can_be_restored(tmp_path: Path) -> None:
    file = capture_file(tmp_path, some_heads())

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        file.rename(tmp_path / "elsewhere.npz")
        await stage.press("r")
        await stage.until(lambda: pane.results.table.dimmed)
        await stage.still()
        assert "capture.npz" in "".join(stage.part(pane.results.words)).replace(" ", "")
        (tmp_path / "elsewhere.npz").rename(file)
        await stage.press("r")
        await stage.until(lambda: not pane.results.table.dimmed)

    play_with(file, script)


def extreme(folder: Path, **metadata: float) -> OpenCapture:
    """A file with an ordinary head, a head that overflows, and a small one."""
    q = np.random.default_rng(0).normal(size=(3, 5, 4))
    sizes = np.array([1, 1e308, 1e-20])[:, np.newaxis, np.newaxis]
    arrays: dict[str, Any] = {"q": q * sizes, "k": q, "causal": False, **metadata}
    np.savez(folder / "x.npz", **arrays)
    return OpenCapture(folder / "x.npz")


def test_a_head_that_overflows_is_refused_and_the_others_measured(tmp_path: Path) -> None:
    file, cache = extreme(tmp_path, scale=0.5), Cache()
    *_, answer = MeasureHead(file, (0, 0), Sides()).work(cache)
    assert isinstance(answer, Measurement)
    with pytest.raises(CaptureError, match="layer 0, head 1: logits overflow float64"):
        list(MeasureHead(file, (0, 1), Sides()).work(cache))
    found: dict[tuple[int, int], Any] = {}
    for part in MeasureHeads(file).work(cache):
        if isinstance(part, HeadStatistics):
            found |= part.heads
    assert [place for place, measured in found.items() if measured is None] == [(0, 1)]
    assert found[0, 2]["max_weight"].value is not None


@for_each("metadata", [{"scale": 1e308}, {"scale": 5e-324}, {"scale": 0.5, "softcap": 5e-324}])
@for_each("rule", ["none", "rms_none"])
def test_an_extreme_scale_of_the_file_is_named(tmp_path: Path, metadata: dict[str, float], rule: str) -> None:
    with pytest.raises(CaptureError, match=r"flow float64: the (scale|soft-cap) must be from 1e-50 to 1e"):
        list(MeasureHead(extreme(tmp_path, **metadata), (0, 0), Sides(rule)).work(Cache()))


def test_tensors_that_are_named_are_those_of_the_file_and_of_its_baseline(tmp_path: Path) -> None:
    q = np.random.default_rng(0).normal(size=(2, 5, 4))
    for name in ("one.npz", "other.npz"):
        np.savez(tmp_path / name, left=q, right=q)
    file, cache = OpenCapture(tmp_path / "one.npz", Hints(tensor="q=left,k=right")), Cache()
    answers = CompareHeads(file, tmp_path / "other.npz").work(cache)
    compared = [head for answer in answers if isinstance(answer, ComparedHeads) for head in answer.heads]
    assert [each.first for each in compared] == [None, None]

"""The Watch pane: it follows a run, steps through it, and says which heads pass the limit."""

import json
from pathlib import Path

import pytest
from attn_tui.tui.panes.watch.pane import WatchPane
from stage import Stage, played

pytestmark = pytest.mark.slow

WIDE = (120, 40)


def append(path: Path, *steps: int, worst: float = 50.0) -> None:
    with path.open("a") as file:
        for step in steps:
            rows = [[5.0, 6.0, 7.0], [worst + step, 1.0, 2.0]]
            line = {"step": step, "max_logit": rows, "entropy": [[1, 2, 3], [4, 5, 6]], "scaled": True, "scale": 0.5}
            file.write(json.dumps(line) + "\n")


async def watching(stage: Stage, path: Path) -> WatchPane:
    pane = await stage.opened(WatchPane)
    pane.run = path
    pane.follow()
    return pane


@played(size=WIDE)
async def test_without_a_run_it_says_how_to_open_one(stage: Stage) -> None:
    pane = await stage.opened(WatchPane)
    await stage.still()
    assert "No run is open. `attn-tui watch RUN` opens" in stage.words(pane.ranking)


@played(size=WIDE)
async def test_a_run_is_waited_for_and_followed(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    pane = await watching(stage, path)
    await stage.until(lambda: "does not exist yet" in stage.words(pane.ranking))
    append(path, 0, 1)
    await stage.until(lambda: pane.shown is not None)
    assert "step 1, 2 of 2" in stage.text
    assert "No head is over 100" in stage.text
    assert "× 0.5 is inside the logits" in stage.words(pane.ranking)
    assert pane.map.cursor == (1, 0)  # the worst head
    append(path, 60)
    await stage.until(lambda: "step 60, 3 of 3" in stage.text)
    assert "1 head is over 100" in stage.text
    assert "Layer 1 head 0 is over 100 at step 60." in " ".join(stage.text.replace("│", " ").split())


@played(size=WIDE)
async def test_commas_and_full_stops_step_through_the_run(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0, 10, 20)
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: "step 20, 3 of 3" in stage.text)
    for where in ("step 10, 2 of 3", "step 0, 1 of 3", "step 0, 1 of 3"):
        await stage.press("comma")
        await stage.until(lambda where=where: where in stage.text)
    await stage.press("full_stop")
    await stage.until(lambda: "step 10, 2 of 3" in stage.text)
    assert pane.at == 10
    await stage.press("end")
    await stage.until(lambda: "step 20, 3 of 3" in stage.text)
    assert pane.at is None


@played(size=WIDE)
async def test_keys_and_clicks_choose_a_head_and_m_the_statistic(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0)
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: pane.shown is not None)
    await stage.press("n")
    assert pane.map.cursor == (0, 2)
    assert "layer 0 head 2" in stage.text
    await stage.press("right")
    assert pane.map.cursor == (0, 0)
    await stage.press("down")
    assert pane.map.cursor == (1, 0)
    await stage.press("m")
    assert pane.map.statistic == "entropy"
    line = next(y for y, text in enumerate(stage.part(pane.ranking)) if text.strip().startswith("0/1"))
    await stage.pilot.click(offset=(pane.ranking.region.x + 3, pane.ranking.content_region.y + line))
    await stage.answered()
    assert pane.map.cursor == (0, 1)
    await stage.pilot.click(offset=(pane.map.content_region.x + 5, pane.map.content_region.y + 3))
    await stage.answered()
    assert pane.map.cursor == (1, 0)


@played(size=(60, 24))
async def test_a_narrow_screen_shows_the_list_then_the_map(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0)
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: "1/0" in stage.text)
    await stage.press("v")
    assert pane.in_front is pane.map

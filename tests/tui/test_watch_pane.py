"""The Watch pane: it follows a run, steps through it, and says which heads pass the limit."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.watching.limits import LIMIT
from attn_tui.core.watching.snapshot import sample_run
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.help import parser_of
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.watch.pane import WatchPane
from attn_tui.tui.panes.watch.widget import FROM_LINES, FROM_PYTORCH, LINE
from attn_tui.tui.views.glyphs import UNICODE
from cases import present
from stage import Stage, played

WIDE = (120, 40)


def append(path: Path, *steps: int, worst: float = 50.0) -> None:
    with path.open("a") as file:
        for step in steps:
            rows = [[5.0, 6.0, 7.0], [worst + step, 1.0, 2.0]]
            line = {"step": step, "max_logit": rows, "entropy": [[1, 2, 3], [4, 5, 6]], "scaled": True, "scale": 0.5}
            file.write(json.dumps(line) + "\n")


async def watching(stage: Stage, path: Path, numbers: bool = True) -> WatchPane:
    pane = stage.app.panes["Watch"] = WatchPane(stage.app, run=path)
    pane.shows_numbers = numbers
    return await stage.opened(WatchPane)


@played(size=(120, 50))
async def test_without_a_run_it_shows_an_example_and_how_to_make_one(stage: Stage) -> None:
    pane = await stage.opened(WatchPane)
    await stage.until(lambda: pane.shown is not None, "the example")
    await stage.still()
    words = stage.words(pane.page)
    assert "An example" in words
    for command in (*FROM_PYTORCH, FROM_LINES):
        assert command in words
        program, name, *rest = shlex.split(command)
        assert program == "attn-tui"
        COMMANDS[name].load().request(parser_of(name, UNICODE).read(rest))


@played(size=WIDE)
async def test_the_line_that_the_example_shows_can_be_watched(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(f"{LINE}\n")
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: pane.shown is not None, "the line")
    await stage.still()
    assert "An example" not in stage.text
    assert "20.5" in stage.text


def test_the_example_is_a_run_that_passes_the_limit() -> None:
    steps = [json.loads(line) for line in sample_run().read_text().splitlines()]
    assert [each["step"] for each in steps] == [*range(0, 121, 5)]
    largest = [max(map(max, each["max_logit"])) for each in steps]
    assert largest[0] < 5 < LIMIT < max(largest)


@played(size=WIDE)
async def test_a_run_is_waited_for_and_followed(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    pane = await watching(stage, path)
    await stage.until(lambda: "does not exist yet" in stage.words(pane.page))
    assert FROM_LINES in stage.text, "how to make one"
    append(path, 0, 1)
    await stage.until(lambda: pane.shown is not None)
    await stage.until(lambda: "step 1, 2 of 2" in stage.text, "the numbers in the place of the page")
    assert "No head is over 100" in stage.text
    assert "The logits include the scale, × 0.5." in stage.words(pane.ranking)
    assert pane.map.cursor == (1, 0)  # the worst head
    await stage.press("less_than_sign")
    append(path, 60)
    alert = "Layer 1 head 0 is over 100 at step 60."
    await stage.until(lambda: alert in " ".join(stage.text.replace("│", " ").split()))
    assert stage.app.pane is not pane, "it is named in other panes too"
    await stage.show("Watch")
    await stage.until(lambda: "step 60, 3 of 3" in stage.text)
    assert "1 head is over 100" in stage.text


@played(size=WIDE)
async def test_a_head_that_came_back_between_two_looks_is_told(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    append(path, 0, 1)
    pane = await watching(stage, path)
    await stage.until(lambda: "No head is over 100." in stage.words(pane.ranking))
    with path.open("a") as file:
        for step, value in ((2, 5.0), (3, 150.0), (4, 7.0)):
            file.write(
                json.dumps({"step": step, "max_logit": [[5, 6, 7], [value, 1, 2]], "entropy": [[1] * 3] * 2}) + "\n"
            )
    alert = "Layer 1 head 0 was over 100, first at step 3."
    await stage.until(lambda: alert in " ".join(stage.text.replace("│", " ").split()))
    words = stage.words(pane.ranking)
    assert "No head is over 100 at step 4, but 1 was earlier." in words
    assert "Peak: 150.0, layer 1 head 0 at step 3; now 7.0." in words
    assert "0 over 100, 1 was" in stage.text
    assert stage.words(pane.map).count("^") == 2  # the head, and what it means
    while pane.map.cursor != (1, 0):
        await stage.press("n")
    assert "first over 100 step 3 peak 150.0 at step 3" in " ".join(stage.words(pane.map).split())


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
    for key in ("full_stop", "end"):
        await stage.press(key)
        await stage.until(lambda: "step 20, 3 of 3" in stage.text)
        assert pane.at is None, key
        await stage.press("comma")
        await stage.until(lambda: "step 10, 2 of 3" in stage.text)


@played(size=WIDE)
async def test_keys_and_clicks_choose_a_head_which_lines_cannot_open(stage: Stage, tmp_path: Path) -> None:
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
    await stage.press("M")
    assert pane.map.statistic == "entropy"
    await stage.click("0/1", pane.ranking)
    assert pane.map.cursor == (0, 1)
    await stage.click((5, 3), pane.map)
    assert pane.map.cursor == (1, 0)
    await stage.press("enter")
    await stage.until(lambda: "This run is numbers only." in stage.text)
    assert stage.app.pane is pane


@played(size=WIDE)
async def test_the_page_has_every_head_over_the_steps_and_v_leads_to_numbers(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", *range(0, 60, 10))
    pane = await watching(stage, tmp_path / "run.jsonl", numbers=False)
    await stage.until(lambda: "at step 50" in stage.text)
    assert "run.jsonl" in stage.lines[0], "the top bar has nothing that moves"
    assert pane.page.cursor == (1, 0)
    line = next(line for line in stage.part(pane.page) if line.startswith("▌"))
    await stage.click((20, stage.part(pane.page).index(line) + 1), pane.page)
    assert pane.map.cursor != (1, 0), "the head below"
    await stage.press("v")
    assert "step 50, 6 of 6" in stage.text
    await stage.press("v")
    assert stage.app.pane is not pane
    assert pane.on_page


@played(size=WIDE)
async def test_other_statistics_and_changes_are_shown_as_numbers(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0, 10)
    pane = await watching(stage, tmp_path / "run.jsonl", numbers=False)
    await stage.until(lambda: pane.shown is not None)
    for key in ("M", "b"):
        assert pane.on_page
        await stage.press(key)
        await stage.still()
        assert not pane.on_page
        await stage.press(key)
        await stage.still()


@played(size=(60, 24))
async def test_a_narrow_screen_shows_the_list_then_the_map(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0)
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: "1/0" in stage.text)
    await stage.press("v")
    assert pane.in_front is pane.map
    await stage.press("v")
    assert stage.app.pane is not pane


@played(size=WIDE)
async def test_b_compares_steps_and_b_on_the_baseline_ends_it(stage: Stage, tmp_path: Path) -> None:
    append(tmp_path / "run.jsonl", 0, 10)
    append(tmp_path / "run.jsonl", 20, worst=10)
    pane = await watching(stage, tmp_path / "run.jsonl")
    await stage.until(lambda: "step 20, 3 of 3" in stage.text)
    await stage.press("comma")
    await stage.until(lambda: "step 10, 2 of 3" in stage.text)
    await stage.press("b")
    await stage.until(lambda: "Step 10 is the baseline" in stage.words(pane.ranking))
    await stage.press("end")
    await stage.until(lambda: "step 20, 3 of 3 since 10" in stage.text)
    assert "Since step 10, the largest |logit| of no head grew." in stage.words(pane.ranking)
    line = next(text for text in stage.part(pane.ranking) if text.strip().startswith("1/0"))
    assert line.split()[:3] == ["1/0", "30.0", "−30.0"]
    assert "change of largest |logit|" in stage.text
    assert pane.command().endswith("--once --baseline 10")
    await stage.press("comma", "comma")
    await stage.until(lambda: "step 0, 1 of 3 since 10" in stage.text)
    await stage.press("full_stop", "b")
    await stage.until(lambda: "since 10" not in stage.text and "step 10, 2 of 3" in stage.text)
    assert "No head is over 100" in stage.text


@pytest.mark.slow
@played(size=WIDE)
async def test_enter_opens_a_head_in_capture_beside_the_baseline_and_esc_comes_back(
    stage: Stage, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    for step in (100, 200):
        q, k = (rng.normal(size=(1, 3, 8, 4)).astype(np.float32) for _ in "qk")
        np.savez(tmp_path / f"step-{step:06d}.npz", q=q, k=k)
    pane = await watching(stage, tmp_path)
    await stage.until(lambda: "step 200, 2 of 2" in stage.text)
    while pane.map.cursor != (0, 2):
        await stage.press("right")
    await stage.press("enter")
    capture = stage.pane(CapturePane)
    await stage.until(lambda: capture.is_current)
    assert present(capture.heads.capture).path == tmp_path / "step-000200.npz"
    assert capture.heads.cursor == (0, 2)
    assert "Esc" in stage.lines[-1]
    await stage.press("escape")
    assert stage.app.pane is pane
    await stage.press("comma")
    await stage.until(lambda: "step 100, 1 of 2" in stage.text)
    await stage.press("b", "full_stop")
    await stage.until(lambda: "step 200, 2 of 2 since 100" in stage.text)
    await stage.press("enter")
    await stage.until(lambda: len(capture.heads.compared) == 3)
    assert capture.heads.baseline == tmp_path / "step-000100.npz"
    await stage.until(lambda: "against step-000100.npz" in stage.text)


@played(size=WIDE)
async def test_a_file_that_is_gone_is_not_opened(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "step-000001.npz"
    np.savez(path, q=np.ones((1, 1, 4, 4)), k=np.ones((1, 1, 4, 4)))
    pane = await watching(stage, tmp_path)
    await stage.until(lambda: pane.shown is not None)
    path.unlink()
    await stage.press("enter")
    await stage.until(lambda: "The file of step 1 is gone" in stage.text)
    assert stage.app.pane is pane

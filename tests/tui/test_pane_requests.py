"""The requests of panes: when they are withdrawn, sent again, and reported as failed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from attn_tui.core.errors import NO_MEMORY
from attn_tui.core.questions import request as requests
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.learn import ReadItems
from attn_tui.core.questions.request import Cache, Request, Work
from attn_tui.core.questions.rules import CompareRules
from attn_tui.core.questions.sweep import SweepQuestion
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import HeadStatistics, MeasureHeads, OpenCapture
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.rules.requests import MeasureRuleCurves, MeasureRules
from stage import Stage, capture_file, play, played, some_heads


def never(*_: object) -> Iterator[None]:
    """Work without end."""
    while True:
        yield None


@pytest.mark.parametrize(
    ("pane", "keys", "kinds"),
    [
        ("Lab", ["right"], [Measure]),
        ("Sweep", [], [SweepQuestion]),
        ("Rules", [], [MeasureRules, MeasureRuleCurves]),
        ("Rules", ["m"], [CompareRules]),
    ],
    ids=["lab", "sweep", "rules", "mechanisms"],
)
@played()
async def test_requests_are_withdrawn_when_the_pane_is_left(
    stage: Stage, pane: str, keys: list[str], kinds: list[type[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in kinds:
        monkeypatch.setattr(kind, "work", never)
    stage.app.action_pane(pane)
    await stage.press(*keys)
    await stage.until(lambda: set(kinds) <= {asked.kind for asked in stage.engine.asked})
    assert not stage.engine.at_rest
    stage.app.action_pane("Heads")
    await stage.at_rest()


@pytest.mark.parametrize("pane", ["Sweep", "Rules"])
@played()
async def test_work_continues_while_the_terminal_is_too_small(
    stage: Stage, pane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (SweepQuestion, MeasureRules):
        monkeypatch.setattr(kind, "work", never)
    await stage.show(pane)
    await stage.resize(20, 5)
    await stage.resize(120, 40)
    assert not stage.engine.at_rest


@played()
async def test_testing_claims_continues_while_other_panes_are_on_screen(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadItems, "work", never)
    (await stage.opened(LearnPane)).show_item("like-cosine")
    stage.app.action_pane("Lab")
    await stage.press("right")
    await stage.settled()
    assert not stage.engine.at_rest


def test_reloading_the_file_while_heads_are_measured_measures_all_of_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, work = True, MeasureHeads.work

    def measure(request: MeasureHeads, cache: Cache) -> Work:
        for step in work(request, cache):
            yield step
            while paused and isinstance(step, HeadStatistics):
                yield None

    monkeypatch.setattr(MeasureHeads, "work", measure)
    monkeypatch.setattr(requests, "BATCH_INTERVAL", -1.0)

    async def script(stage: Stage) -> None:
        nonlocal paused
        pane = stage.pane(CapturePane)
        await stage.until(lambda: len(pane.heads.measured) == 1)
        await stage.press("R")
        await stage.until(lambda: not pane.heads.measured or len(pane.heads.measured) == 1)
        paused = False
        await stage.at_rest()
        assert len(pane.heads.measured) == 3

    play(script, first_pane="Capture", given={"file": OpenCapture(capture_file(tmp_path, some_heads(heads=3)))})


@played()
async def test_claims_that_cannot_be_tested_are_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_out(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ReadItems, "work", runs_out)
    (await stage.opened(LearnPane)).show_item("like-cosine")
    await stage.until(lambda: NO_MEMORY[:20] in stage.text)

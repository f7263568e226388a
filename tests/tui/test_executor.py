"""Long work in the app on other threads, processes and clusters: the setting, results, progress, and what is lost."""

import multiprocessing
import threading
from collections.abc import Iterator
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

import pytest
from attn_tui.core.questions import request
from attn_tui.core.questions.request import Progress
from attn_tui.core.questions.sweep import Points, SweepQuestion
from attn_tui.core.work import cluster, workers
from attn_tui.tui.compute.engine import Reply
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.widgets.picker import ChoiceScreen
from stage import FORMATS, SMALL, Stage, play, played
from textual import events

PANES = (SweepPane, RulesPane)


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let work go to workers however short it is, and end them after the test."""
    begun: list[workers.Workers] = []

    class Noted(workers.Workers):
        def __init__(self) -> None:
            super().__init__()
            begun.append(self)

    resource_tracker.ensure_running()  # it needs the standard error, which Textual replaces
    monkeypatch.setattr(workers, "_SHORT", 0.0)
    monkeypatch.setattr("attn_tui.core.work.sweeps._LEAST", 0.02)
    monkeypatch.setattr(request, "Workers", Noted)
    yield
    for each in begun:
        end(each)


def end(found: workers.Workers) -> None:
    """End the workers."""
    found.name = "serial"
    found.lose(found.opening())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["threads:2", "processes:2"])
def test_the_panes_show_what_they_show_without_workers(name: str) -> None:
    found: dict[str, list[str]] = {"serial": [], name: []}

    async def script(stage: Stage, executor: str) -> None:
        stage.engine.executor = executor
        for kind in PANES:
            pane = await stage.complete(kind)
            found[executor] += [pane.numbers(each) for each in FORMATS]
        capture = await stage.opened(CapturePane)
        await stage.at_rest()
        found[executor].append(repr((sorted(capture.heads.measured.items()), sorted(capture.heads.verdicts.items()))))

    for executor in found:
        play(partial(script, executor=executor))
    assert found[name] == found["serial"]


def test_work_of_several_workers_is_answered_with_their_number_and_their_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attn_tui.core.work.sweeps._LEAST", 1e-5)
    monkeypatch.setattr(request, "BATCH_INTERVAL", -1.0)
    cache = request.Cache()
    cache.workers.name = "threads:2"
    found = [answer for answer in SweepQuestion(SMALL, "1:39").work(cache) if isinstance(answer, Progress)]
    assert found[-1].pace is not None
    assert found[-1].pace.workers == 2
    assert found[-1].pace.rate > 0


@played()
async def test_progress_shows_the_workers_and_their_rate(stage: Stage) -> None:
    await stage.at_rest()
    stage.engine.hold = True
    await stage.opened(SweepPane)
    await stage.until(lambda: stage.engine.at_rest, "the sweep")
    number = stage.engine.held_for(SweepQuestion)[0].number
    for content in (Progress(0.5, workers.Pace(2, 7.1)), Points([], 0.5)):
        stage.engine.deliver(Reply(number, content))
    await stage.answered()
    assert "2 workers · 7.1 parts/s" in stage.lines[0]
    stage.engine.let_go()
    await stage.at_rest()
    assert "workers" not in stage.lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["threads:2", "processes:2"])
@played()
async def test_leaving_the_pane_leaves_no_work(stage: Stage, name: str) -> None:
    stage.engine.executor = name
    pane = await stage.opened(SweepPane)
    await stage.until(lambda: pane.curves.swept.points, "a point")
    stage.app.action_pane("Lab")
    await stage.at_rest()
    before = len(pane.curves.swept.points)
    await stage.settled()
    assert len(pane.curves.swept.points) == before
    again = await stage.complete(SweepPane)
    assert len(again.curves.swept.points) == len(again.curves.swept.values)


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs pip install 'attn-tui[cluster]'")
    monkeypatch.setattr(cluster, "_START", 1)

    async def script(stage: Stage) -> None:
        stage.engine.executor = "dask:tcp://127.0.0.1:1"
        pane = await stage.opened(SweepPane)
        await stage.until(lambda: "no scheduler answers" in stage.words(pane.words))
        assert "executor dask:tcp://127.0.0.1:1" in stage.words(pane.words)
        stage.engine.executor = "serial"
        await stage.press("right")
        await stage.until(lambda: pane.curves.is_complete)
        assert "scheduler" not in stage.words(pane.words)

    play(script)


@pytest.mark.parametrize("text", ["serial", "threads:3", "dask:tcp://node:8786"])
def test_an_executor_is_chosen_from_a_list_or_typed_and_kept(text: str) -> None:
    async def script(stage: Stage) -> None:
        stage.app.action_executor()
        await stage.until(lambda: isinstance(stage.app.screen, ChoiceScreen), "the list")
        await stage.until(lambda: "or threads:N" in stage.text, "what else may be typed")
        stage.app.screen.post_message(events.Paste(text))
        await stage.press("enter")
        await stage.until(lambda: not isinstance(stage.app.screen, ChoiceScreen), "the pane")
        assert stage.engine.executor == text

    app = play(script, settings=Settings(executor="threads"))
    assert app.changed_settings()["executor"] == text


def test_the_executor_of_the_settings_is_not_written_again() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()

    assert "executor" not in play(script, settings=Settings(executor="processes:3")).changed_settings()


@pytest.mark.slow
def test_workers_are_opened_once_and_closed_when_another_executor_is_named() -> None:
    def threads() -> list[Any]:
        return [each for each in threading.enumerate() if each.name.startswith("work_")]

    from attn_tui.core.parameters import Parameters
    from attn_tui.core.work.sweeps import parts, sweep_plan

    plan = [*parts(sweep_plan(Parameters(), range(1, 200)))]
    found = workers.Workers()
    found.name = "threads:2"
    for _ in range(2):
        assert sum(len(done.results) for done in found.begin(plan).steps()) == 199
    assert len(threads()) == 2
    found.name = "processes:1"
    assert sum(len(done.results) for done in found.begin(plan).steps()) == 199
    assert len(multiprocessing.active_children()) == 1
    assert not threads()
    end(found)

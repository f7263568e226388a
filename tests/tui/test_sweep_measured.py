"""What the Sweep pane measures, and what it shows in the meantime."""

import itertools
from dataclasses import dataclass, field, replace

import pytest
from attn_tui.core.errors import NO_MEMORY
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions import request as requests
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.request import Failed, Request, Work
from attn_tui.core.questions.sweep import Points, SweepQuestion
from attn_tui.tui.compute.measure import Predict
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.sweep.requests import GRIDS
from stage import SMALL, Stage, numbers, played, refusal, succeeds
from sweeps import points

SHORT = "1:64:log6,16,32,64"  # a grid that is quick


@pytest.fixture(autouse=True)
def short_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the first grid by a short one, so that tests are quick."""
    for module in ("parts", "pane"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{module}.GRIDS", (replace(GRIDS[0], text=SHORT), *GRIDS[1:]))


@dataclass
class Sweeps:
    """The sweeps started, each with its last d_k; while paused, they stop at a point."""

    started: list[tuple[Parameters, int]] = field(default_factory=list[tuple[Parameters, int]])
    paused: bool = False


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> Sweeps:
    found, real = Sweeps(), SweepQuestion.work

    def work(question: SweepQuestion, cache: requests.Cache) -> Work:
        found.started.append((question.parameters, question.d_ks[-1]))
        for answer in real(question, cache):
            yield answer
            while isinstance(answer, Points) and found.paused:
                yield None

    monkeypatch.setattr(SweepQuestion, "work", work)
    monkeypatch.setattr(requests, "BATCH_INTERVAL", -1.0)  # send each point separately
    return found


async def shown(stage: Stage) -> SweepPane:
    """Open the pane and wait until it shows all its results."""
    pane = await stage.complete(SweepPane)
    await stage.at_rest()
    return pane


@played()
async def test_moving_the_cursor_starts_no_other_sweep(stage: Stage, sweeps: Sweeps) -> None:
    pane = await shown(stage)
    await stage.press("right", "up", "M", "M", "v")
    stage.app.action_pane("Lab")
    await stage.press("left")
    await shown(stage)
    assert pane.parameters == replace(SMALL, d_k=127)
    assert sweeps.started == [(SMALL, 64)]


@played()
async def test_another_grid_is_swept_once(stage: Stage, sweeps: Sweeps) -> None:
    pane = await shown(stage)
    stage.engine.hold = True
    await stage.press("G")
    assert refusal(lambda: pane.numbers("csv")).startswith("0 of ")
    stage.engine.let_go()
    await stage.known(pane)
    assert pane.curves.swept.values[-1] == 512
    assert max(pane.curves.swept.exact) == 512
    await stage.press("u")
    assert succeeds(lambda: pane.numbers("csv"))
    assert pane.curves.swept.values[-1] == 64
    assert sweeps.started == [(SMALL, 64), (SMALL, 512)]


@pytest.mark.usefixtures("sweeps")
@played()
async def test_points_appear_one_by_one_and_never_for_earlier_parameters(stage: Stage) -> None:
    pane, engine = await shown(stage), stage.engine
    engine.hold = True
    await stage.press("r")
    await stage.until(lambda: engine.at_rest)
    late, engine.held = engine.held, []
    await stage.press("r")
    await stage.until(lambda: engine.at_rest)
    engine.hand_on([reply for reply in engine.held_for(SweepQuestion) if isinstance(reply.content, Points)][:3])
    for reply in late:
        engine.deliver(reply)
    await stage.until(lambda: pane.progress is not None, "progress")
    await stage.still()
    assert not pane.is_stale
    assert 0 < len(pane.curves.swept.points) < len(pane.curves.swept.values)
    assert all(point.point.parameters.seed == 2 for point in pane.curves.swept.points.values())
    assert " %" in stage.lines[0]
    engine.let_go()
    await stage.known(pane)


@played()
async def test_a_sweep_stops_when_the_pane_is_left_and_continues_with_the_same_points(
    stage: Stage, sweeps: Sweeps
) -> None:
    sweeps.paused = True
    pane = await stage.opened(SweepPane)
    await stage.until(lambda: pane.curves.swept.points, "the first point")
    await stage.press("right")
    await stage.until(lambda: pane.plot.reading[0] == replace(SMALL, d_k=65), "the measurement at the cursor")
    assert pane.progress is not None
    await stage.press("<")
    await stage.until(lambda: stage.engine.at_rest, "the end of the sweep")
    assert pane.progress is None
    assert len(pane.curves.swept.points) == 1
    sweeps.paused = False
    await shown(stage)
    assert {*sweeps.started} == {(SMALL, 64)}
    for point in points(SMALL, pane.curves.swept.values):
        mine = pane.curves.swept.points[point.parameters.d_k].point
        assert numbers(mine.measurement) == numbers(point.measurement)


@pytest.mark.slow
@played()
async def test_a_hidden_pane_paints_nothing(stage: Stage) -> None:
    pane, engine = await shown(stage), stage.engine
    engine.hold = True
    await stage.press("r")
    await stage.until(lambda: engine.at_rest)
    late = engine.held_for(SweepQuestion)
    engine.hand_on([reply for reply in engine.held if reply not in late])
    engine.hold = False
    stage.app.action_pane("Lab")
    await stage.settled()
    before = stage.text
    for reply in late:
        engine.deliver(reply)
    await stage.still()
    assert stage.text == before
    assert pane.curves.swept.complete


@pytest.mark.slow
@played()
async def test_back_at_a_former_cursor_its_reading_is_shown(stage: Stage) -> None:
    pane, engine = await shown(stage), stage.engine
    engine.hold = True
    await stage.press("right", "right", "right")
    await stage.until(lambda: engine.at_rest)
    await stage.press("down")
    engine.let_go()
    await stage.at_rest()
    assert pane.plot.reading[0] == SMALL


@pytest.mark.parametrize(
    ("kind", "late"),
    [(SweepQuestion, False), *(pytest.param(*each, marks=pytest.mark.slow) for each in (
        (SweepQuestion, True), *itertools.product((Measure, Predict), (False, True))))],
)  # fmt: skip
@played()
async def test_a_failure_is_explained_unless_the_parameters_have_changed_since(
    stage: Stage, kind: type[Request], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs_out(*_: object) -> Work:
        raise MemoryError

    pane, engine = await shown(stage), stage.engine
    engine.hold = True
    with monkeypatch.context() as patch:
        patch.setattr(kind, "work", runs_out)
        await stage.press("r")
        await stage.until(lambda: engine.at_rest)
    failed, _ = engine.held_for(kind)
    assert isinstance(failed.content, Failed)
    if late:
        await stage.press("r")
    engine.hand_on([failed])
    await stage.still()
    assert (NO_MEMORY in stage.words(pane.words)) != late
    engine.let_go()
    await stage.press("right")
    await stage.known(pane)
    assert NO_MEMORY not in stage.words(pane.words)

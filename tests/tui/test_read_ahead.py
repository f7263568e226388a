"""What the same key leads to again is measured, composed and painted ahead, and nobody sees a difference."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab import service
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.prediction import Theory
from attn_tui.core.parameters import Parameters
from attn_tui.tui import work
from attn_tui.tui.messages import Computed, Failed, MeasurementReady
from attn_tui.tui.recompute import Work
from rich.segment import Segment
from test_app import SMALL, Held, Stage, numbers, play
from test_one_frame import Watched, played, until
from textual.pilot import Pilot

NEXT = replace(SMALL, d_k=65)  # what SMALL is followed by: components beyond the first chunk have to be made


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a result comes soon, and what is measured ahead does not take too long."""
    for name in ("tui.panes.pane.SOON", "tui.panes.lab.SOON", "tui.work.AHEAD"):
        monkeypatch.setattr(f"attn_tui.{name}", 1000.0)
    for name in ("PARTIAL", "SILENCE"):
        monkeypatch.setattr(f"attn_tui.core.lab.service.{name}", 1000.0)


# The measurement


def lab_after(p: Parameters) -> work.Lab:
    """The lab's measurements, when this has been asked for and shown with its theory."""
    lab = work.Lab()
    [ready] = messages(lab.measure(p))
    messages(lab.predict(ready.measurement))
    return lab


def messages(steps: Work) -> list[MeasurementReady]:
    """What work says, when that is measurements only."""
    said = [message for message in steps if message is not None]
    assert all(isinstance(message, MeasurementReady) for message in said)
    return said  # type: ignore[return-value]


def begun(steps: Work, many: int) -> list[Computed | None]:
    """So many steps."""
    return [next(steps) for _ in range(many)]


def known(theory: Theory | None) -> tuple[Any, ...]:
    """Everything that theory says, to compare with ==."""
    assert theory is not None
    columns = [dict(column.values) for column in theory.prediction.columns]
    return theory.prediction.parameters, columns, [dict(deviations) for deviations in theory.deviations]


def check_it_answers(lab: work.Lab, p: Parameters) -> None:
    """It measures this once, with the numbers of a run of its own and their theory."""
    [ready] = messages(lab.measure(p))
    assert ready.kind == "lab"
    assert ready.measurement.subject == p
    assert ready.measurement.complete
    assert numbers(ready.measurement) == numbers(run(p))
    [expected] = messages(lab_after(p).measure(p))
    assert known(ready.theory) == known(expected.theory)


@cache
def all_steps() -> int:
    """How many steps the measurement of NEXT has after SMALL."""
    return sum(1 for _ in lab_after(SMALL).measure(NEXT))


def steps_at(share: float) -> int:
    """From one step, at 0, to all but one, at 1."""
    return 1 + round(share * (all_steps() - 2))


def test_what_is_measured_ahead_is_what_would_have_been_measured() -> None:
    lab = lab_after(SMALL)
    [ahead] = messages(lab.measure_next(NEXT))
    assert ahead.kind == "next"
    assert numbers(ahead.measurement) == numbers(run(NEXT))
    check_it_answers(lab, NEXT)


@pytest.mark.parametrize("share", [0, 0.2, 0.5, 1])
def test_what_has_been_begun_ahead_is_gone_on_with(share: float) -> None:
    lab = lab_after(SMALL)
    begun(lab.measure_next(NEXT), steps_at(share))
    check_it_answers(lab, NEXT)


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_going_on_takes_only_the_steps_that_are_left(share: float) -> None:
    lab = lab_after(SMALL)
    begun(lab.measure_next(NEXT), steps_at(share))
    assert sum(1 for _ in lab.measure(NEXT)) == all_steps() - steps_at(share)


def test_what_has_been_measured_ahead_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_after(SMALL)
    [ahead] = messages(lab.measure_next(NEXT))
    monkeypatch.setattr(lab, "_measured", None)
    [ready] = messages(lab.measure(NEXT))
    assert ready.measurement is ahead.measurement
    assert ready.theory is ahead.theory


OTHERS = [{"d_k": 63}, {"d_k": 130}, {"seed": 1}, {"seed": 1, "d_k": 130}, {"n_keys": 32}, {"components": "laplace"}]


@pytest.mark.parametrize("share", [0, 0.5, 1])
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_another_question_is_answered_as_if_nothing_had_been_begun(other: dict[str, Any], share: float) -> None:
    asked = replace(SMALL, **other)
    lab = lab_after(SMALL)
    ahead = lab.measure_next(NEXT)
    begun(ahead, steps_at(share))
    found = messages(lab.measure(asked))
    assert [each.kind for each in found] == ["lab"]
    assert numbers(found[0].measurement) == numbers(run(asked))
    assert list(ahead) == [], "what has been begun ends at its next step"
    messages(lab.predict(found[0].measurement))
    for later in (asked, replace(asked, d_k=asked.d_k + 1), NEXT):  # nor is anything left of it in what is kept
        assert [numbers(each.measurement) for each in messages(lab.measure(later))] == [numbers(run(later))]


def test_of_two_that_are_measured_ahead_the_later_one_counts() -> None:
    lab = lab_after(SMALL)
    first = lab.measure_next(replace(SMALL, d_k=63))
    begun(first, 1)
    begun(lab.measure_next(NEXT), 2)
    assert list(first) == []
    check_it_answers(lab, NEXT)


def test_what_takes_long_is_given_up_and_gone_on_with_once_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_after(SMALL)
    monkeypatch.setattr(work, "AHEAD", -1.0)  # everything takes long
    assert list(lab.measure_next(NEXT)) == [None]
    left = list(lab.measure(NEXT))
    assert len(left) == all_steps() - 1
    [ready] = [message for message in left if isinstance(message, MeasurementReady)]
    assert numbers(ready.measurement) == numbers(run(NEXT))


def test_first_draws_that_were_found_ahead_are_followed_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(SMALL, d_k=65, batch=8, n_queries=512, n_keys=512)  # several blocks of scores
    lab = lab_after(replace(asked, d_k=64))
    monkeypatch.setattr(service, "PARTIAL", -1.0)  # everything takes so long that its first draws are shown
    ahead = lab.measure_next(asked)
    first = next(message for message in ahead if message is not None)
    assert isinstance(first, MeasurementReady)
    assert not first.measurement.complete
    found = messages(lab.measure(asked))
    assert {each.kind for each in found} == {"lab"}
    assert found[0].measurement is first.measurement
    assert [each.measurement.complete for each in found] == [False] * (len(found) - 1) + [True]
    assert numbers(found[-1].measurement) == numbers(run(asked))


def test_a_scale_without_a_multiplier_is_an_error_only_for_who_asks() -> None:
    start = replace(SMALL, d_k=2, scale="log_d_k")
    asked = replace(start, d_k=1)
    lab = lab_after(start)
    assert list(lab.measure_next(asked)) == []
    with pytest.raises(InputError, match="no value at d_k = 1"):
        list(lab.measure(asked))
    check_it_answers(lab, replace(start, d_k=3))


def test_memory_that_runs_out_is_an_error_only_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_out(*_: object) -> Iterator[None]:
        yield from ()
        raise MemoryError

    lab = lab_after(SMALL)
    with monkeypatch.context() as patch:
        patch.setattr("attn_tui.core.lab.experiment.stream", runs_out)
        assert list(lab.measure_next(NEXT)) == []
        with pytest.raises(MemoryError):
            list(lab.measure(NEXT))
    check_it_answers(lab, NEXT)


# The Lab pane


def knows(lab: Any, d_k: int) -> bool:
    """Whether this d_k has been measured ahead, and so has the one after it, so that nothing more will be."""
    p = replace(lab.parameters, d_k=d_k)
    return {p, lab._ahead.following(p)} <= {*lab._ahead.known}


def requests_of(lab: Any) -> list[str]:
    """The kinds of work that the Lab asks for from now on."""
    kinds: list[str] = []
    through = lab.recompute.request

    def request(kind: str, asked: Callable[[], Work]) -> None:
        if asked is not work.nothing:
            kinds.append(kind)
        through(kind, asked)

    lab.recompute.request = request
    return kinds


async def ready(stage: Stage, key: str, **following: Any) -> Parameters:
    """Press a key and wait until it is shown, and until this, which it leads to again, has been measured."""
    await stage.press(key)
    await stage.settled()
    expected = replace(stage.asked, **following)
    await stage.until(lambda: knows(stage.lab, expected.d_k), f"{following} after {key}")
    await stage.still()
    return expected


def test_what_is_measured_ahead_moves_nothing_on_screen() -> None:
    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: knows(app.lab, 66))
        assert app.measured == app.lab.parameters.d_k == 65
        assert app.lab.theory is not None
        assert app.lab.theory.prediction.parameters.d_k == 65

    assert played(script).frames == ["d_k 65, measured 65"]


def test_the_same_key_again_is_answered_in_one_frame_without_being_computed() -> None:
    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: knows(app.lab, 66))
        app.frames.clear()
        kinds = requests_of(app.lab)
        await pilot.press("right")
        await until(pilot, lambda: knows(app.lab, 67))
        assert kinds == ["next"]

    assert played(script).frames == ["d_k 66, measured 66"]


def test_two_values_are_measured_ahead() -> None:
    async def script(stage: Stage) -> None:
        def known() -> set[int]:
            return {p.d_k for p in stage.lab._ahead.known if p.d_k > stage.asked.d_k}

        await stage.settled()
        for d_k in (65, 66, 67):
            await stage.until(lambda d_k=d_k: known() == {d_k, d_k + 1})
            await stage.still()
            assert known() == {d_k, d_k + 1}
            kinds = requests_of(stage.lab)
            await stage.press("right")
            await stage.settled()
            assert "lab" not in kinds
            assert numbers(stage.measurement) == numbers(run(replace(SMALL, d_k=d_k)))

    play(script)


def test_where_results_do_not_keep_up_with_a_held_key_none_is_shown_before_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attn_tui.tui.panes.lookahead._HELD", 1000.0)
    through = work.Lab.measure
    measured: list[int] = []

    def measure(self: work.Lab, parameters: Parameters, then: Parameters | None = None) -> Work:
        time.sleep(0.03)
        measured.append(parameters.d_k)
        return through(self, parameters, then)

    async def script(stage: Stage) -> None:
        await stage.settled()
        monkeypatch.setattr(work.Lab, "measure", measure)
        shown: list[tuple[int, int]] = []
        outrun: list[bool] = []
        show = stage.lab.show_measurement

        def note(measurement: Any, theory: Theory | None) -> None:
            shown.append((measurement.subject.d_k, stage.lab.parameters.d_k))
            outrun.append(stage.lab._ahead.outrun)
            show(measurement, theory)

        stage.lab.show_measurement = note  # type: ignore[method-assign]
        for _ in range(40):
            stage.send("right")
            await asyncio.sleep(0.01)
        await stage.settled()
        assert shown[-1] == (SMALL.d_k + 40, SMALL.d_k + 40)
        assert all(d_k <= asked for d_k, asked in shown)
        assert sorted({d_k for d_k, _ in shown}) == [d_k for d_k, _ in shown]
        assert any(outrun)
        assert len(measured) < 30
        assert numbers(stage.measurement) == numbers(run(stage.asked))

    play(script)


@pytest.mark.parametrize("error", [MemoryError, InputError("no"), None], ids=["memory", "input", "multiplier"])
def test_what_a_held_key_has_not_got_to_may_fail_and_nobody_is_told(
    error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With None, the scale rule has no multiplier at d_k 1."""
    p, further = (replace(SMALL, d_k=d_k, scale="log_d_k") for d_k in (2, 1))

    async def script(stage: Stage) -> None:
        await stage.settled()
        lab = stage.lab
        monkeypatch.setattr(lab._ahead, "aims", lambda asked: iter([further, asked]))
        through = work.Lab.measure

        def measure(self: work.Lab, parameters: Parameters, then: Parameters | None = None) -> Work:
            if error and parameters == further:
                raise error
            return through(self, parameters, then)

        monkeypatch.setattr(work.Lab, "measure", measure)
        assert [found.measurement.subject for found in messages(lab._aimed(p))] == [p]
        with pytest.raises((MemoryError, InputError)):
            messages(lab._aimed(further))

    play(script, p)


def test_what_waits_for_a_frame_does_not_take_the_place_of_what_was_asked_for_since() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        begun: list[str] = []

        def asked(name: str) -> Callable[[], Work]:
            def begin() -> Work:
                begun.append(name)
                return work.nothing()

            return begin

        stage.lab.compute("lab", asked("older"))
        stage.lab.compute_now("lab", asked("newer"))
        await stage.until(lambda: begun)
        await stage.still()
        assert begun == ["newer"]

    play(script)


def test_what_is_shown_already_is_not_shown_again_when_it_comes_once_more() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        shown: list[int] = []
        stage.lab.show_measurement = lambda measurement, _: shown.append(measurement.subject.d_k)
        again = stage.lab._ahead.known[stage.asked]
        stage.app.deliver(MeasurementReady("lab", again.measurement, again.theory))
        await stage.still()
        assert shown == []

    play(script)


def test_every_value_that_was_measured_ahead_is_shown_with_its_own_numbers_and_theory() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        expected = await ready(stage, "right", d_k=66)
        for _ in range(4):
            kinds = requests_of(stage.lab)
            following = await ready(stage, "right", d_k=expected.d_k + 1)
            assert "lab" not in kinds
            assert stage.asked == expected
            assert numbers(stage.measurement) == numbers(run(expected))
            assert stage.lab.theory is not None
            assert stage.lab.theory.prediction.parameters == expected
            expected = following

    play(script)


@pytest.mark.parametrize(
    ("keys", "d_k", "following"),
    [
        (["right"], 65, 66),
        (["right", "left"], 64, 63),
        (["left"], 63, 62),
        (["left", "right"], 64, 65),
        (["up"], 128, 256),
        (["right", "up"], 128, 256),
        (["down"], 32, 16),
        (["up", "right"], 129, 130),
        (["pageup"], 80, 96),
        (["pagedown"], 32, 16),
        (["right", "r"], 65, 66),
        (["up", "s"], 128, 256),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_the_last_key_that_changed_d_k_says_what_is_measured_ahead(keys: list[str], d_k: int, following: int) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for key in keys:
            await stage.press(key)
            await stage.settled()
        assert stage.asked.d_k == d_k
        await stage.until(lambda: replace(stage.asked, d_k=following) in stage.lab._ahead.known, f"{following}")

    play(script)


@pytest.mark.parametrize(
    ("d_k", "key", "bound"),
    [
        (2, "left", 1),
        (2, "down", 1),
        (16_383, "right", 16_384),
        (8_192, "up", 16_384),
        (512, "pageup", 576),
        (32, "pagedown", 16),
    ],
)
def test_at_a_bound_nothing_is_measured_ahead(d_k: int, key: str, bound: int) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.until(lambda: knows(stage.lab, min(d_k + 1, 16_384)))
        looked, known = looks_ahead(stage.lab), {*stage.lab._ahead.known}
        kinds = requests_of(stage.lab)
        await stage.press(key)
        await stage.until(lambda: bound in looked)
        await stage.settled()
        assert "next" not in kinds
        assert {*stage.lab._ahead.known} <= {*known, stage.asked}

    play(script, replace(SMALL, d_k=d_k))


def looks_ahead(lab: Any) -> list[int]:
    """The d_k at which the Lab looks for something to measure ahead from now on."""
    looked: list[int] = []
    through = lab._read_ahead

    def look() -> None:
        looked.append(lab.parameters.d_k)
        through()

    lab._read_ahead = look
    return looked


def test_before_a_key_changes_d_k_the_next_one_is_measured_ahead() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for _ in range(2):
            await stage.until(lambda: knows(stage.lab, SMALL.d_k + 1))
            await stage.press("r")
            await stage.settled()

    play(script)


def test_a_scale_without_a_value_further_on_is_said_when_it_is_asked_for() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        kinds = requests_of(stage.lab)
        await stage.press("left")
        await stage.until(lambda: kinds == ["lab", "next"])
        await stage.settled()
        assert "no value" not in stage.text
        await stage.press("left")
        await stage.until(lambda: stage.table.dimmed)
        await stage.still()
        assert "1/ln d_k has no value at d_k = 1" in stage.words(stage.lab.results.words)

    play(script, replace(SMALL, d_k=3, scale="log_d_k"))


@pytest.mark.parametrize("wait", [True, False], ids=["slowly", "at-once"])
def test_what_was_measured_ahead_for_another_seed_is_not_shown(wait: bool) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        shown: list[Parameters] = []
        through = stage.lab.show_measurement

        def show(measurement: Any, theory: Theory | None) -> None:
            shown.append(measurement.subject)
            through(measurement, theory)

        stage.lab.show_measurement = show  # type: ignore[method-assign]
        for key, changed in (("r", {"seed": 1}), ("right", {"d_k": 66})):
            expected = replace(stage.asked, **changed)
            await stage.press(key)
            assert stage.asked == expected
            if wait:
                await stage.settled()
                assert shown[-1] == stage.lab.parameters == expected
                assert numbers(stage.measurement) == numbers(run(expected))
        await stage.settled()
        assert shown[-1] == stage.lab.parameters == replace(SMALL, d_k=66, seed=1)
        assert numbers(stage.measurement) == numbers(run(stage.asked))
        assert {subject.seed for subject in shown} == {1}

    play(script)


def test_what_was_measured_ahead_and_comes_late_is_kept_but_not_shown() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("r")
        await stage.settled()
        before = stage.text
        late = MeasurementReady("next", run(NEXT), stage.lab.theory)
        stage.app.deliver(late)
        await stage.until(lambda: stage.lab._ahead.known.get(NEXT) is late)
        await stage.still()
        assert stage.text == before
        assert stage.measurement.subject == stage.lab.parameters == replace(SMALL, seed=1)

    play(script)


@pytest.mark.parametrize("kind", ["json", "csv", "markdown"])
def test_exported_numbers_are_those_of_a_fresh_start(kind: Any) -> None:
    found: list[str] = []

    async def stepped(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        kinds = requests_of(stage.lab)
        await stage.press("right")
        await stage.settled()
        assert "lab" not in kinds
        found.append(stage.lab.numbers(kind))

    async def fresh(stage: Stage) -> None:
        await stage.settled()
        found.append(stage.lab.numbers(kind))

    play(stepped)
    play(fresh, replace(SMALL, d_k=66))
    assert found[0] == found[1]


# Lines that are composed and painted ahead


def painted(stage: Stage) -> list[list[Segment]]:
    """All that is on screen, with its styles."""
    return [list(strip.simplify()) for strip in stage.app.screen._compositor.render_strips()]


def counted(stage: Stage) -> list[str]:
    """The widgets whose lines are composed from now on."""
    composed: list[str] = []

    def count(widget: Any) -> None:
        through = widget.compose_lines

        def compose_lines(width: int, height: int) -> Any:
            composed.append(type(widget).__name__)
            return through(width, height)

        widget.compose_lines = compose_lines

    for widget in (stage.table, stage.lab.results.words, stage.lab.results.histograms, stage.panel):
        count(widget)
    return composed


def test_what_was_composed_ahead_is_not_composed_again() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        before = stage.part(stage.table)
        composed = counted(stage)
        await stage.press("right")
        await stage.settled()
        assert stage.measurement.subject.d_k == 66
        assert stage.part(stage.table) != before
        await stage.until(lambda: knows(stage.lab, 67))
        await stage.still()
        # What 67 looks like, once; not what 66 does.
        assert sorted(composed) == ["Histograms", "Paragraph", "ParameterPanel", "StatisticsTable"]

    play(script)


async def nothing(stage: Stage) -> None:
    pass


async def focus(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.table)


async def cursor(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.table)
    await stage.press("down", "down")


async def larger(stage: Stage) -> None:
    await stage.resize(120, 40)


async def smaller(stage: Stage) -> None:
    await stage.resize(60, 20)


async def theory(stage: Stage) -> None:
    await stage.press("t")


async def view(stage: Stage) -> None:
    await stage.press("v")


async def colours(stage: Stage) -> None:
    stage.app.theme = "nord"


async def stale(stage: Stage) -> None:
    await stage.press("0")
    await stage.until(lambda: stage.table.dimmed)
    await stage.press("escape")
    await stage.settled()


WAYS = [nothing, focus, cursor, larger, smaller, theory, view, colours, stale]


@pytest.mark.parametrize("keys", [["right"], []], ids=["shown", "not-shown"])
@pytest.mark.parametrize("change", WAYS, ids=lambda change: change.__name__)
def test_whatever_changes_after_lines_were_composed_ahead_those_on_screen_are_right(
    change: Callable[[Stage], Awaitable[None]], keys: list[str]
) -> None:
    found: list[list[list[Segment]]] = []

    async def stepped(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        await change(stage)
        await stage.press(*keys)
        await stage.settled()
        assert stage.asked.d_k == 65 + len(keys)
        found.append(painted(stage))

    async def fresh(stage: Stage) -> None:
        await stage.settled()
        await change(stage)
        await stage.settled()
        found.append(painted(stage))

    play(stepped, size=(80, 24))
    play(fresh, replace(SMALL, d_k=65 + len(keys)), size=(80, 24))
    assert found[0] == found[1]


def test_what_is_typed_looks_like_that_though_it_was_composed_ahead() -> None:
    found: list[list[list[Segment]]] = []

    async def stepped(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        await typed(stage)

    async def typed(stage: Stage) -> None:
        await stage.settled()
        await stage.press("6", "6")
        await stage.settled()
        found.append(painted(stage))

    play(stepped, size=(80, 24))
    play(typed, size=(80, 24))
    assert found[0] == found[1]


def test_lines_that_were_composed_ahead_for_another_size_are_composed_again() -> None:
    found: list[list[list[Segment]]] = []

    async def stepped(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        was = stage.table.size
        with stage.app.batch_update():  # no frame between the two
            await stage.resize(120, 40)
            await stage.until(lambda: stage.table.size != was)
            await stage.press("right")
            await stage.until(lambda: stage.measurement.subject.d_k == 66)
        await stage.settled()
        found.append(painted(stage))

    async def fresh(stage: Stage) -> None:
        await stage.settled()
        found.append(painted(stage))

    play(stepped, size=(80, 24))
    play(fresh, replace(SMALL, d_k=66), size=(120, 40))
    assert found[0] == found[1]


# What overtakes what


def test_results_asked_for_before_do_not_replace_what_was_measured_ahead() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        stage.app.hold = True
        await stage.press("r")
        await stage.until(lambda: any(each.kind == "lab" for each in stage.app.held))
        stage.panel.show(replace(SMALL, d_k=65))
        await stage.press("right")
        await stage.until(lambda: stage.measurement.subject.d_k == 66)
        stage.app.let_go()
        await stage.still()
        await stage.still()
        assert stage.measurement.subject == stage.lab.parameters == replace(SMALL, d_k=66)

    play(script)


def test_a_key_that_leads_back_is_answered_without_being_computed() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.text
        await stage.press("r")
        await stage.settled()
        assert stage.text != before
        kinds = requests_of(stage.lab)
        stage.panel.ask_for(SMALL)
        await stage.settled()
        assert stage.text == before
        assert "lab" not in kinds

    play(script)


@pytest.mark.parametrize("keys", [("4", "s"), ("R", "r")])
def test_a_key_right_after_typing_or_a_reset_is_what_lasts(keys: tuple[str, str]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.send(*keys)
        await stage.still()
        await stage.still()
        assert stage.app.parameters == stage.lab.parameters

    play(script)


def test_a_scale_without_a_value_is_refused_also_after_what_was_not_accepted() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("0")
        await stage.until(lambda: stage.table.dimmed)
        await stage.press("s")
        await stage.still()
        assert "1/ln d_k has no value at d_k = 1" in stage.words(stage.lab.results.words)
        assert stage.table.dimmed

    play(script, replace(SMALL, d_k=1, scale="d_k"))


def test_a_wait_for_a_result_may_end_when_the_app_is_being_left() -> None:
    class Left(Held):
        async def _close_all(self) -> None:
            await super()._close_all()
            self.expect_no_more()  # as its timer does

    async def run_it() -> None:
        app = Left(SMALL)
        async with app.run_test() as pilot:
            await Stage(app, pilot).settled()
            app.expect(1000.0)

    asyncio.run(run_it())


def test_what_fails_late_does_not_speak_of_what_is_shown_now() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.text
        stage.app.deliver(Failed("lab", "too much memory"))
        await stage.still()
        assert stage.text == before

    play(script)


def test_theory_that_fails_for_what_is_shown_is_said() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        measurement = stage.measurement
        stage.lab.show_measurement(measurement, None)
        stage.app.deliver(Failed("theory", "too much memory"))
        await stage.until(lambda: "too much memory." in stage.words(stage.lab.results.words))

    play(script)


def test_what_comes_soon_is_followed_by_what_is_measured_ahead_however_late_its_theory_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attn_tui.core.lab.kept.KEPT_CURVES", ())

    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: knows(app.lab, 66))
        kinds = requests_of(app.lab)
        app.kept = []
        await pilot.press("right_square_bracket")
        for soon in (1000.0, -1.0):  # the measurement, and then its theory, whose curves have to be made
            await until(pilot, lambda: app.kept)
            monkeypatch.setattr("attn_tui.tui.panes.lab.SOON", soon)
            kept, app.kept = app.kept, []
            for message in kept:
                app.through(message)
            await pilot.pause()
        app.kept = None
        await until(pilot, lambda: kinds == ["lab", "next"])

    played(script)


def test_a_result_from_before_a_known_one_is_not_shown() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await ready(stage, "right", d_k=66)
        await stage.press("right")  # which is known
        stage.app.hold = True
        await stage.press("r")  # which is not, and has not come
        before = stage.measurement
        stage.app.through(MeasurementReady("lab", run(SMALL), stage.lab.theory))
        await stage.still()
        assert stage.measurement is before
        stage.app.let_go()
        await stage.settled()

    play(script)


def test_a_request_that_was_put_off_does_not_come_after_a_newer_one() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        kinds = requests_of(stage.lab)
        stage.lab.compute("lab", lambda: iter(()))
        stage.lab.drop("lab")
        await stage.still()
        assert kinds == []

    play(script)

"""Runs: what is read of them, when, and once; growth is that of the numbers; history is bounded."""

import json
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.questions.watch import WatchRun
from attn_tui.core.watching.offenders import offenders, slopes, two_sided
from attn_tui.core.watching.poll import KEPT, START, Cursor, added, poll, read_run
from attn_tui.core.watching.snapshot import RunSnapshot, snapshot
from attn_tui.core.watching.step import WatchStep, logits, parse_line, says_scale
from capture_files import save as save_capture
from cases import for_each

stats = import_module("scipy.stats")  # without type stubs


def line(step: int, rows: object, **more: object) -> str:
    return json.dumps({"schema": "attn-tui/watch-1", "step": step, "max_logit": rows, **more})


def steps_of(values: Sequence[float], apart: int = 100) -> tuple[WatchStep, ...]:
    return tuple(parse_line(line(number * apart, [[value]])) for number, value in enumerate(values))


def shown_of(history: Sequence[WatchStep], limit: float, **more: Any) -> RunSnapshot:
    found = snapshot(history, limit, **more)
    assert found is not None
    return found


def everything(path: Path, cursor: Cursor = START) -> tuple[list[WatchStep], Cursor, list[str]]:
    steps: list[WatchStep] = []
    notes: list[str] = []
    more = True
    while more:
        news = poll(path, cursor)
        steps += news.steps
        notes += news.notes
        cursor, more = news.cursor, news.more
    return steps, cursor, notes


def test_a_line_holds_a_number_for_each_head() -> None:
    step = parse_line(
        line(7, [[1, 2.5], [3, None]], entropy=[[1, 1], [2, 2]], layers=["a", "b"], scale=0.5, scaled=True)
    )
    assert (step.step, step.layers, step.heads, step.scale) == (7, ("a", "b"), (2, 2), 0.5)
    assert np.array_equal(step.values["max_logit"], [[1, 2.5], [3, math.nan]], equal_nan=True)
    assert np.array_equal(step.values["entropy"], [[1, 1], [2, 2]])
    ragged = parse_line(line(0, [[1], [2, 3]]))
    assert ragged.heads == (1, 2)
    assert np.array_equal(ragged.values["max_logit"], [[1, math.nan], [2, 3]], equal_nan=True)


@for_each(
    ("text", "pieces"),
    [
        ("{", ("is not JSON",)),
        ("[1]", ("JSON object",)),
        ('{"schema": "other", "step": 1, "max_logit": [[1]]}', ("attn-tui/watch-1", "'other'")),
        ('{"max_logit": [[1]]}', ("step", "whole number", "None")),
        ('{"step": -1, "max_logit": [[1]]}', ("step", "-1")),
        ('{"step": true, "max_logit": [[1]]}', ("step", "True")),
        ('{"step": 1}', ("no statistic",)),
        ('{"step": 1, "max_logit": [1, 2]}', ("'max_logit'", "for each layer")),
        *((f'{{"step": 1, "max_logit": {rows}}}', ("'max_logit'",)) for rows in ("[]", "[[]]")),
        ('{"step": 1, "max_logit": [["x"]]}', ("'max_logit'", "numbers", "x")),
        ('{"step": 1, "max_logit": [[1]], "entropy": [[1, 2]]}', ("'entropy'", "'max_logit'")),
        ('{"step": 1, "max_logit": [[1]], "layers": ["a", "b"]}', ("layers", "1 names", "2")),
        ('{"step": 1, "max_logit": [[1]], "scaled": "yes"}', ("scaled", "'yes'")),
        ('{"step": 1, "max_logit": [[1]], "scale": [1]}', ("scale", "number")),
        ('{"step": 1' + "0" * 300 + ', "max_logit": [[1]]}', ("step", "to 1e+15", "not 1000")),
        *(('{"step": 1' + "0" * zeros + "}", ("a whole number of more than 308 digits",)) for zeros in (400, 5000)),
        ('{"step": 1, "more": ' + "[" * 3000 + "]" * 3000 + "}", ("nested deeper than 100 levels",)),
        ('{"step": 1, "step": 2, "max_logit": [[1]]}', ("has 'step' twice",)),
        (b'{"step": 1, "max_logit": [[1]], "layers": ["\xff"]}', ("is not UTF-8",)),
        ('{"step": 1, "max_logit": [[5e-324]]}', ("'max_logit'", "1e-50", "5e-324")),
        ('{"step": 1, "max_logit": [[1' + "0" * 300 + "]]}", ("'max_logit'", "1e+50", "not 1000")),
        ('{"step": 1, "max_logit": [[1]], "time": 1e999}', ("time", "inf")),
        ('{"step": 1, "max_logit": [[1]], "scale": 1e308, "scaled": false}', ("scale", "1e+308")),
        ('{"step": 1, "max_logit": [[Infinity]], "scale": 0, "scaled": false}', ("scale", "0")),
        (
            json.dumps({"step": 1, "max_logit": [[1]] * 20_000 + [[1] * 200]}),
            ("20001 layers", "200 heads", "1,048,576"),
        ),
    ],
)
def test_a_wrong_line_is_refused_with_what_is_accepted(text: str | bytes, pieces: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        parse_line(text)
    assert "\n" not in str(refused.value)
    for piece in pieces:
        assert piece in str(refused.value)


@pytest.mark.parametrize(
    ("more", "expected", "words"),
    [
        ({"scaled": True, "scale": 0.125}, 80.0, "the logits include the scale, × 0.125"),
        ({"scaled": False, "scale": 0.125}, 10.0, "scores × 0.125"),
        ({"scaled": False}, 80.0, "scores before the scale"),
        ({"scale": 0.125}, 80.0, "does not tell whether its logits include × 0.125"),
    ],
)
def test_scores_are_multiplied_by_the_scale_and_this_is_said(
    more: dict[str, Any], expected: float, words: str
) -> None:
    step = parse_line(line(0, [[80.0]], **more))
    found = logits(step)
    assert found is not None
    assert found[0, 0] == expected
    assert words in says_scale(step)


def test_growth_and_the_step_of_passing_are_those_of_an_exponential() -> None:
    rate = math.log(1.4) / 1000
    [worst] = offenders(steps_of([20 * math.exp(rate * 100 * n) for n in range(20)]), 100)
    assert worst.growth() == pytest.approx(1.4)
    assert worst.passes_in == pytest.approx(math.log(100 / worst.value) / rate)
    assert not worst.over


def test_growth_is_that_of_the_last_32_numbers_and_fewer_than_8_have_none() -> None:
    assert offenders(steps_of([1.2**n for n in range(7)]), 1e9)[0].rate is None
    assert offenders(steps_of([1.2**n for n in range(8)]), 1e9)[0].growth(100) == pytest.approx(1.2)
    history = steps_of([1.1**n + 0.1 * (n % 3) for n in range(40)])
    whole, recent, fewer = (offenders(history[-count:], 1e9)[0].rate for count in (40, 32, 31))
    assert whole == recent != fewer


def test_growth_that_began_only_now_is_told() -> None:
    values = [*[10.0] * 32, *(10 * 1.1**n for n in range(12))]
    values = [value * wobble for value, wobble in zip(values, noise("white", 44, 1, 0.001)[:, 0], strict=True)]
    [head] = offenders(steps_of(values), 1e9)
    assert head.growth(100) == pytest.approx(1.1, rel=0.01)


def test_gaps_nulls_and_impossible_numbers_are_skipped() -> None:
    lines = [line(n, [[1.1**n if n % 3 else None, 2.0]]) for n in range(30)]
    lines[5::7] = [json.dumps({"step": n, "entropy": [[1.0, 1.0]]}) for n in range(5, 30, 7)]
    lines[6] = line(6, [[1.0], [2.0]])  # other heads
    lines[8], lines[9] = line(8, [[math.inf, 0.0]]), line(9, [[-1.0, -1.0]])
    found = {each.head: each for each in offenders([parse_line(text) for text in lines], 1e9)}
    assert found[0].growth(1) == pytest.approx(1.1)
    assert found[1].rate is None


@pytest.mark.parametrize(("growth", "told"), [(1.2, True), (1.19, False)])
def test_nothing_is_foretold_beyond_10_times_the_steps_that_growth_was_seen_over(growth: float, told: bool) -> None:
    [head] = offenders(steps_of([growth**n for n in range(8)]), 1e6)
    assert head.growth(100) == pytest.approx(growth)
    assert (head.passes_in is not None) is told


def test_probabilities_are_those_of_students_t() -> None:
    for freedom in (6.0, 14.0, 30.0):
        t = np.array([0.0, 0.5, 2.0, 5.0, 20.0])
        found = two_sided(-t, np.ones(5), np.full(5, freedom))
        assert found == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)


def noise(kind: str, count: int, heads: int, size: float, seed: int = 0) -> Any:
    """Return series of noise around 1, [step, head]: independent, autocorrelated, or a random walk."""
    found = np.random.default_rng(seed).normal(0, size, (count, heads))
    likeness = {"white": 0.0, "like 0.5": 0.5, "like 0.9": 0.9, "walk": 1.0}[kind]
    found[0] /= math.sqrt(1 - min(likeness, 0.99) ** 2)
    for before, after in pairwise(found):
        after += likeness * before
    return np.exp(found)


@pytest.mark.parametrize("count", [8, 12, 33])
@pytest.mark.parametrize("kind", ["white", "like 0.5", "like 0.9", "walk"])
def test_noise_of_1024_heads_has_no_growth(kind: str, count: int) -> None:
    for seed in range(10):
        found, _ = slopes(np.arange(count) * 100.0, np.log(noise(kind, count, 1024, 0.1, seed)))
        assert np.isnan(found).all()


@pytest.mark.parametrize(("kind", "size"), [("white", 0.03), ("like 0.5", 0.01), ("walk", 0.01)])
def test_growth_among_1024_noisy_heads_is_told_long_before_the_limit(kind: str, size: float) -> None:
    """Of a head that grows from 20 to 100 in 48 points, the half of them are enough."""
    values = 20 * noise(kind, 24, 1024, size)
    values[:, 7] *= 1.4 ** (np.arange(24) / 10)
    worst, other, *_ = offenders([parse_line(line(100 * n, [row.tolist()])) for n, row in enumerate(values)], 100)
    assert worst.head == 7
    assert worst.passes_in == pytest.approx(2400, rel=0.3)
    assert other.rate is None


def test_a_head_at_the_limit_is_not_over_it() -> None:
    [head] = offenders(steps_of([100.0] * 9), 100)
    assert (head.over, head.passes_in) == (False, None)
    [head] = offenders(steps_of([100 * 1.1 ** (n - 8) for n in range(9)]), 100.0)
    assert (head.over, head.passes_in) == (False, 0)


@pytest.mark.parametrize(("apart", "per", "count"), [(100, 1000, 11), (10, 100, 11), (1, 10, 11), (2, 10, 101)])
def test_growth_is_shown_over_no_more_steps_than_it_was_fitted_to(apart: int, per: int, count: int) -> None:
    shown = shown_of(steps_of([20 * 1.01 ** (apart * n) for n in range(count)], apart), 1e300)
    assert shown.per == per
    assert shown.ranked[0].growth(per) == pytest.approx(1.01**per)


def test_logits_that_only_creep_foretell_nothing() -> None:
    [head] = offenders(steps_of([5 - 1e-4 / (1 + n) for n in range(20)]), 100)
    assert head.rate is None
    assert head.passes_in is None


def test_heads_are_ranked_over_the_limit_then_by_when_they_pass_it() -> None:
    def rows(n: int) -> list[list[float | None]]:
        return [[50.0, 120.0, 40 * 1.05**n], [math.inf, 30 * 1.02**n, 60.0]]

    history = tuple(parse_line(line(n, rows(n))) for n in range(10))
    found = offenders(history, 100)
    assert [(each.layer, each.head) for each in found] == [(1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (0, 0)]
    assert [each.over for each in found] == [True, True, False, False, False, False]


def test_a_head_that_was_over_the_limit_has_its_first_step_there_and_its_largest_logit() -> None:
    history = steps_of([5, 120, 150, 150, 8])
    found = shown_of(history, 100)
    [head] = found.ranked
    assert (head.value, head.over, head.came_back) == (8, False, True)
    assert (head.first_over, head.peak, head.peak_step) == (100, 150, 200)
    assert (found.over, found.came_back, found.passed) == (0, 1, True)
    [head] = offenders(history, 150)
    assert (head.first_over, head.peak, head.came_back) == (None, 150, False)
    [head] = offenders(steps_of([5, math.inf, 8]), 100)
    assert (head.first_over, head.peak, head.peak_step) == (100, math.inf, 100)


def test_an_earlier_step_knows_nothing_of_a_later_peak() -> None:
    history = steps_of([5, 120, 150, 8])
    assert not shown_of(history, 100, at=0).passed
    at = shown_of(history, 100, at=100)
    assert (at.over, at.came_back) == (1, 0)
    assert (at.ranked[0].peak, at.ranked[0].peak_step) == (120, 100)


def test_heads_that_were_over_the_limit_come_after_those_that_pass_it_soon() -> None:
    rows = [[[150.0 if n == 2 else 7.0, 30 * 1.05**n, 120.0, 60.0, 200.0 if n == 3 else 6.0]] for n in range(10)]
    found = offenders([parse_line(line(n, each)) for n, each in enumerate(rows)], 100)
    assert [each.head for each in found] == [2, 1, 4, 0, 3]


@pytest.mark.parametrize("last", [line(2, [[None, 1.0]]), json.dumps({"step": 2, "entropy": [[1.0, 1.0]]})])
def test_a_head_without_a_number_now_is_still_one_that_was_over_the_limit(last: str) -> None:
    found = shown_of([parse_line(text) for text in (line(0, [[5.0, 1.0]]), line(1, [[120.0, 1.0]]), last)], 100)
    head = next(each for each in found.ranked if each.head == 0)
    assert math.isnan(head.value)
    assert (head.first_over, head.peak, head.over, head.rate, head.passes_in) == (1, 120, False, None, None)
    assert (found.over, found.came_back, len(found.ranked)) == (0, 1, 2)


def test_heads_over_the_limit_that_a_later_step_does_not_have_are_not_forgotten() -> None:
    texts = [line(0, [[5.0], [6.0]]), line(1, [[120.0], [6.0]]), line(2, [[130.0]]), line(3, [[5.0], [6.0], [7.0]])]
    found = shown_of([parse_line(text) for text in texts], 100)
    assert (found.others_over, found.passed, found.came_back) == (1, True, 0)
    assert shown_of([parse_line(text) for text in texts[:2]], 100).others_over is None
    renamed = [parse_line(line(n, [[120.0 - 50 * n]], layers=[name])) for n, name in enumerate("ab")]
    assert shown_of(renamed, 100).others_over == 0


def test_a_history_that_drops_steps_keeps_their_peaks() -> None:
    numbers = {777: 101.0, 779: 150.0, 9_700: 90.0}
    texts = (line(n, [[numbers.get(n, 1.0), 2.0]]) for n in range(10_000))
    history = added((), map(parse_line, texts), limit=100)
    found = shown_of(history, 100)
    head, other = sorted(found.ranked, key=lambda each: each.head)
    assert {777, 779}.isdisjoint(found.steps)
    assert (head.first_over, head.peak, head.peak_step) == (777, 150, 779)
    assert (other.first_over, other.peak) == (None, 2)
    assert [round(value) for value in found.trends[0, 0] if value > 1] == [150, 90]
    assert not shown_of(history, 100, at=max(step for step in found.steps if step < 777)).passed


def test_a_run_that_is_started_over_forgets_the_peaks_of_the_earlier_one() -> None:
    history = added((), (parse_line(line(n, [[120.0 if n in (3, 7) else 1.0]])) for n in range(10)))
    [head] = offenders(added(history, [parse_line(line(5, [[1.0]]))], since=5), 100)
    assert head.first_over == 3
    [head] = offenders(added(history, [parse_line(line(0, [[1.0]]))], since=0), 100)
    assert head.first_over is None


@for_each(
    ("peak", "more"),
    [
        ("[[1.0, 101.0]]", ""),
        ("[ [1e0 ,\t1.01E2 ] ]", ""),
        ("[[null, 101]]", ""),
        ("[[1.0, NaN]]", ""),
        ("[[Infinity, 1.0]]", ""),
        ("[[1.0, 101.0]]", ', "entropy": [[1.0, 1.0]]'),
        ("[[1.0, 10.1]]", ', "scale": 10, "scaled": false'),
    ],
)
def test_of_more_lines_than_are_kept_none_over_the_limit_is_left_out(peak: str, more: str, tmp_path: Path) -> None:
    path, count, at = tmp_path / "run.jsonl", 4 * KEPT, KEPT + 1
    lines = [line(n, [[1.0, 2.0]]) + "\n" for n in range(count)]
    assert at not in {step.step for step in _polled(path, lines)}
    lines[at] = f'{{"step": {at}, "max_logit": {peak}{more}}}\n'
    assert at in {step.step for step in _polled(path, lines)}
    [head] = [each for each in WatchRun(run=path, limit=100).answer().ranked if each.first_over is not None]
    assert head.first_over == at
    lines[at] = f'{{"step": {at}, "max\\u005flogit": {peak}{more}}}\n'
    assert at in {step.step for step in _polled(path, lines)}
    lines[at] = f'{{"step": {at}, "max_logit": [[]]}}\n'  # may be anything
    assert at not in {step.step for step in _polled(path, lines)}
    assert len(poll(path).notes) == 1


def _polled(path: Path, lines: Sequence[str]) -> tuple[WatchStep, ...]:
    path.write_text("".join(lines))
    return poll(path).steps


def test_lines_below_the_limit_that_was_asked_for_are_left_out(tmp_path: Path) -> None:
    path, count = tmp_path / "run.jsonl", 4 * KEPT
    path.write_text("".join(line(n, [[60.0]]) + "\n" for n in range(count)))
    assert len(poll(path, limit=60).steps) <= KEPT
    assert len(poll(path, limit=59.9).steps) == count
    [head] = WatchRun(run=path, limit=59.9).answer().ranked
    assert (head.first_over, head.peak_step) == (0, 0)


def test_a_history_is_ordered_replaces_and_stays_bounded() -> None:
    history: tuple[WatchStep, ...] = ()
    for step in (3, 1, 2, 1):
        history = added(history, [parse_line(line(step, [[step * 1.0]]))])
    assert [each.step for each in history] == [1, 2, 3]
    history = added((), (parse_line(line(n, [[1.0]])) for n in range(10_000)))
    numbers = [each.step for each in history]
    assert len(history) <= KEPT
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-100:] == [*range(9_900, 10_000)]


def test_a_snapshot_of_an_earlier_step_knows_nothing_of_later_ones() -> None:
    history = steps_of([10, 20, 30, 40, 50, 60])
    earlier, newest = shown_of(history, 100, at=300), shown_of(history, 100)
    assert (earlier.step, newest.step) == (300, 500)
    assert earlier.ranked == tuple(offenders(history[:4], 100))
    assert [*earlier.trends[0, 0]] == [10, 20, 30, 40]
    assert earlier.steps == newest.steps
    assert (shown_of(history, 100, at=0).per, earlier.per, snapshot((), 100)) == (1, 100, None)


def test_every_head_of_a_large_model_has_a_trend_of_its_first_and_last_step() -> None:
    history = tuple(parse_line(line(n, [[n + 1.0] * 32] * 32)) for n in range(100))
    shown = shown_of(history, 100)
    assert len(shown.trends) == 32 * 32
    assert all((trend[0], trend[-1]) == (1, 100) for trend in shown.trends.values())
    assert {*np.diff(shown.trends[0, 0])} <= {1, 2, 3}
    assert len(shown.trends[0, 0]) == 48


def test_a_trend_has_a_place_for_every_step() -> None:
    lines = [line(0, [[1.0]]), line(1, [[1.0, 2.0]]), '{"step": 2, "entropy": [[1]]}', line(3, [[3.0]])]
    shown = shown_of([parse_line(text) for text in lines], 100)
    assert np.array_equal(shown.trends[0, 0], [1, math.nan, math.nan, 3], equal_nan=True)


def test_only_whole_lines_are_read_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(line(0, [[1.0]]) + "\n" + line(1, [[2.0]])[:20])
    steps, cursor, notes = everything(path)
    assert ([step.step for step in steps], notes) == ([0], [])
    with path.open("a") as file:
        file.write(line(1, [[2.0]])[20:] + "\n")
    steps, cursor, notes = everything(path, cursor)
    assert [step.step for step in steps] == [1]
    assert everything(path, cursor)[0] == []


def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join([line(0, [[1.0]]), "nonsense", "", line(1, [[2.0]]), ""]))
    steps, _, notes = everything(path)
    assert [step.step for step in steps] == [0, 1]
    assert notes == ["run.jsonl line 2: is not JSON: Expecting value at character 1"]


def test_of_more_lines_than_are_kept_the_newest_some_older_and_the_wanted_one_are_read(tmp_path: Path) -> None:
    path, count, wanted = tmp_path / "run.jsonl", 3 * KEPT, KEPT + 4
    path.write_text("".join(line(n, [[1.0]]) + "\n" for n in range(count)))
    news = poll(path, wanted=(wanted,))
    read = [step.step for step in news.steps]
    assert read == sorted(read)
    assert len(read) <= KEPT + 1
    assert {0, wanted, *range(count - KEPT // 2, count)} <= {*read}
    assert (news.cursor.lines, news.more) == (count, False)
    with path.open("a") as file:  # from a checkpoint on, and with other lines
        file.write("".join(line(n, [[2.0]]) + "\n" for n in range(KEPT, count)))
    assert len(poll(path, news.cursor).steps) == count - KEPT
    with path.open("a") as file:
        file.write("".join(line(n, [[2.0]]) + "\nnonsense\n" for n in range(count, count + KEPT)))
    assert len(poll(path, news.cursor).steps) == count


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_in_another_encoding_is_told_as_such(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_text(mark + line(0, [[1.0]]) + "\n", encoding)
    with pytest.raises(InputError, match="byte order mark of UTF-16; must be UTF-8"):
        poll(path)


def test_a_byte_order_mark_of_utf_8_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(line(0, [[1.0]]) + "\r\n" + line(1, [[2.0]]) + "\r\n", "utf-8-sig")
    steps, _, notes = everything(path)
    assert ([step.step for step in steps], notes) == ([0, 1], [])


def test_a_pipe_in_place_of_a_run_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    os.mkfifo(path)
    with pytest.raises(InputError, match="must be a folder of captures or a file"):
        poll(path)
    monkeypatch.setattr(Path, "is_file", Path.exists)  # as of the file that the pipe has replaced since
    assert "is not a regular file" in poll(path).waiting


def test_notes_on_thousands_of_bad_lines_are_few(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("nonsense\n" * 5000)
    _, _, notes = everything(path)
    assert len(notes) < 50


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_is_replaced_or_shortened_is_read_from_its_start(replace: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line(n, [[1.0]]) + "\n" for n in range(3)))
    _, cursor, _ = everything(path)
    if replace:
        other = tmp_path / "other"
        other.write_text("".join(line(n, [[2.0]]) + "\n" for n in range(9)))
        os.replace(other, path)
    else:
        path.write_text(line(0, [[2.0]]) + "\n")
    steps, _, notes = everything(path, cursor)
    assert [step.step for step in steps] == [*range(9 if replace else 1)]
    assert "replaced or shortened" in notes[0]


def test_a_run_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    news = poll(tmp_path / "run")
    assert "does not exist yet" in news.waiting
    (tmp_path / "run").mkdir()
    assert "no captures yet" in poll(tmp_path / "run", news.cursor).waiting


def test_the_function_in_the_documentation_writes_lines_that_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/watching.md").read_text()
    code = re.findall("```python\n(.*?)```", page, re.S)[0]
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    for step in (1200, 1300):
        namespace["log_heads"](tmp_path / "run.jsonl", step, 0.125, max_logit=[[12.5, 8.1], [9.0, math.nan]])
    steps, _, notes = everything(tmp_path / "run.jsonl")
    assert ([step.step for step in steps], notes) == ([1200, 1300], [])
    assert steps[0].values["max_logit"][1, 1] == math.inf


def test_the_newest_capture_of_a_folder_comes_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    held: dict[int, Any] = {}
    for step in (100, 300, 200):
        q, k = (rng.normal(size=(1, 2, 8, 4)).astype(np.float32) * step for _ in "qk")
        np.savez(tmp_path / f"7b-{step:06d}.npz", q=q, k=k)
        held[step] = np.abs(q[0] @ np.swapaxes(k[0], 1, 2)).max(axis=(1, 2)) / 2
    damaged(tmp_path / "7b-000400.npz")
    steps, cursor, notes = everything(tmp_path)
    assert [step.step for step in steps] == [300, 200, 100]
    for step in steps:
        assert step.values["max_logit"][0] == pytest.approx(held[step.step], rel=1e-6)
        assert step.file == str(tmp_path / f"7b-{step.step:06d}.npz")
    assert len(notes) == 1
    assert "7b-000400" in notes[0]
    os.unlink(tmp_path / "7b-000100.npz")
    assert everything(tmp_path, cursor)[0] == []


def test_a_capped_head_has_its_largest_logit_before_the_cap(tmp_path: Path) -> None:
    q, k = (np.random.default_rng(seed).normal(size=(1, 2, 8, 4)).astype(np.float32) * 30 for seed in (0, 1))
    for name, cap in (("capped", 20.0), ("plain", None)):
        (tmp_path / name).mkdir()
        save_capture(tmp_path / name / "step-1.safetensors", {"q": q, "k": k}, scale=0.5, softcap=cap)
    [[capped], [free]] = (everything(tmp_path / name)[0] for name in ("capped", "plain"))
    assert capped.values["max_logit"].min() > 100
    assert np.array_equal(capped.values["max_logit"], free.values["max_logit"])
    assert (capped.values["entropy_fraction"] > free.values["entropy_fraction"]).all()


def test_a_run_that_is_started_over_keeps_only_earlier_steps_of_the_other_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line(n, [[1.0]]) + "\n" for n in range(9)))
    first = poll(path)
    history = added((), first.steps, first.since)
    path.write_text("")
    empty = poll(path, first.cursor)
    assert empty.since is None
    path.write_text(line(4, [[2.0]]) + "\n")
    again = poll(path, empty.cursor)
    history = added(history, again.steps, again.since)
    assert [step.step for step in history] == [0, 1, 2, 3, 4]
    assert poll(path, again.cursor).since is None


def damaged(path: Path) -> None:
    path.write_bytes(b"half")
    os.utime(path, (1.0, 1.0))


def save(path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(path, q=rng.normal(size=(1, 2, 8, 4)), k=rng.normal(size=(1, 2, 8, 4)))


def test_a_folder_of_a_run_that_is_started_over_keeps_only_earlier_steps(tmp_path: Path) -> None:
    history: tuple[WatchStep, ...] = ()
    cursor = START
    for steps in ((0, 10, 15, 30), (10, 20)):
        for old in tmp_path.iterdir():
            old.unlink()
        for step in steps:
            save(tmp_path / f"run-{step}.npz")
        more = True
        while more:
            news = poll(tmp_path, cursor)
            cursor, more = news.cursor, news.more
            history = added(history, news.steps, news.since)
    assert [step.step for step in history] == [0, 10, 20]


def test_a_file_that_is_half_written_is_no_news_until_it_is_whole_or_old(tmp_path: Path) -> None:
    half, other = tmp_path / "step-1.npz", tmp_path / "step-2.npz"
    half.write_bytes(b"half")
    other.write_bytes(b"half")
    steps, cursor, notes = everything(tmp_path)
    assert (steps, notes) == ([], [])
    assert everything(tmp_path, cursor) == ([], cursor, [])
    save(half)
    steps, cursor, notes = everything(tmp_path, cursor)
    assert ([step.step for step in steps], notes) == ([1], [])
    damaged(other)
    _, cursor, notes = everything(tmp_path, cursor)
    assert len(notes) == 1
    assert "step-2.npz" in notes[0]
    assert everything(tmp_path, cursor)[2] == []


def test_a_file_that_stays_half_written_is_named_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "step-1.npz").write_bytes(b"half")
    _, cursor, notes = everything(tmp_path)
    assert notes == []
    assert "has no whole capture yet" in poll(tmp_path, cursor).waiting
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    _, cursor, notes = everything(tmp_path, cursor)
    assert len(notes) == 1
    assert everything(tmp_path, cursor)[2] == []


def test_a_file_that_changes_while_it_is_read_is_read_again_without_a_note(tmp_path: Path) -> None:
    path = tmp_path / "step-1.npz"
    path.write_bytes(b"half")
    listed = poll(tmp_path, Cursor(next_files=((path.name, 0, 0),)))  # as it was when the folder was listed
    assert (listed.steps, listed.notes) == ((), ())
    save(path)
    steps, _, notes = everything(tmp_path, listed.cursor)
    assert ([step.step for step in steps], notes) == ([1], [])


def test_a_folder_of_thousands_of_files_is_listed_for_many_of_them_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(100):
        damaged(tmp_path / f"step-{step}.npz")
    listed: list[Path] = []
    original = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        listed.append(path)
        return original(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    steps, _, notes = everything(tmp_path)
    assert (steps, len(notes)) == ([], 100)
    assert len(listed) < 10


def test_of_more_files_than_are_kept_the_newest_and_some_of_the_older_are_read(tmp_path: Path) -> None:
    count = 2 * KEPT
    for step in range(count):
        damaged(tmp_path / f"step-{step}.npz")
    _, cursor, (note, *notes) = everything(tmp_path)
    read = {int(name) for note in notes for name in re.findall(r"step-(\d+)", note)}
    assert len(notes) == len(read) <= KEPT
    assert f"{count - len(read)} other captures are not measured" in note
    assert read.issuperset(range(count - KEPT // 2, count))
    assert min(read) == 0
    damaged(tmp_path / f"step-{count}.npz")
    assert len(everything(tmp_path, cursor)[2]) == 1


def test_one_look_at_a_folder_measures_the_newest_captures_and_those_that_are_asked_for(tmp_path: Path) -> None:
    q = k = np.random.default_rng(0).normal(size=(1, 1, 4, 2)).astype(np.float32)
    for step in range(0, 500, 10):
        save_capture(tmp_path / f"step-{step:05}.safetensors", {"q": q, "k": k}, scale=0.5)
    steps = [*read_run(tmp_path, at=125, baseline=30)]
    fractions = [fraction for fraction, _ in steps]
    *notes, shown = [result for _, results in steps for result in results]
    assert isinstance(shown, RunSnapshot)
    assert (shown.step, shown.baseline) == (120, 30)
    assert shown.steps == (30, 120, *range(180, 500, 10))
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert ["16 other captures are not measured" in str(note) for note in notes] == [True]


def test_changes_are_the_differences_of_two_steps_and_rank_the_heads() -> None:
    history = (
        parse_line(line(0, [[1.0, 5.0], [math.inf, 2.0]], entropy=[[1, 1], [1, 1]])),
        parse_line(line(9, [[4.0, 1.0], [math.inf, 9.0]], entropy=[[2, 1], [1, 0]])),
    )
    shown = shown_of(history, 100, baseline=history[0])
    assert shown.changes is not None
    assert shown.changes["entropy"] == ((1, 0), (0, -1))
    assert [shown.change(layer, head) for layer in (0, 1) for head in (0, 1)] == [3, -4, None, 7]
    assert [(each.layer, each.head) for each in shown.ranked] == [(1, 1), (0, 0), (0, 1), (1, 0)]
    assert (shown.baseline, shown.over) == (0, 1)


def test_scores_are_compared_after_the_scale() -> None:
    history = tuple(parse_line(line(n, [[8.0 * (n + 1)]], scale=0.5, scaled=False)) for n in range(2))
    shown = shown_of(history, 100, baseline=history[0])
    assert shown.change(0, 0) == 4


def test_steps_with_other_heads_have_no_change() -> None:
    history = parse_line(line(0, [[1.0]])), parse_line(line(1, [[1.0, 2.0]]))
    shown = shown_of(history, 100, baseline=history[0])
    assert (shown.baseline, shown.changes, shown.change(0, 0)) == (0, None, None)

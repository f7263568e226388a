"""The programs that use the library: they print the numbers that their comments say, as the screen does."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from attn_tui.core.attention.cost import LayerShape, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.captures.capture import Hints, sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.check import measure
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.errors import InputError
from attn_tui.core.learning.card import question_card, step_card
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.measure import examine, stream
from attn_tui.core.learning.questions import QUESTIONS
from attn_tui.core.learning.tour import STEPS
from attn_tui.core.program.library import (
    card_code,
    checked_code,
    claims_code,
    cost_code,
    opened,
    pair_code,
    watched_code,
)
from attn_tui.core.program.text import NoCodeError
from attn_tui.core.watching.poll import START, added, poll
from attn_tui.core.watching.snapshot import RunSnapshot, snapshot
from attn_tui.core.watching.step import WatchStep
from capture_files import numbers, save
from cases import for_each
from evidence_files import attended
from printed_code import compared, expected_in, lines_of

_QUICK = ("softmax-of-20", "softmax-of-101", "bleu-table")


def test_the_code_of_claims_prints_the_figures_of_those_that_are_tested() -> None:
    outcomes = [examine(claim) for claim in CLAIMS if claim.id in _QUICK]
    text = claims_code(outcomes, "attn-tui claims")
    assert {name.partition(":")[0] for name in expected_in(text)} == {*_QUICK[:2]}
    assert compared(text) == ""
    assert lines_of(text) <= 7


def test_a_claim_that_is_not_tested_says_why_it_has_no_code() -> None:
    [outcome] = [examine(claim) for claim in CLAIMS if claim.id == "bleu-table"]
    with pytest.raises(NoCodeError, match="The claim is about"):
        claims_code([outcome], "attn-tui claims")


@pytest.mark.slow
def test_the_code_of_a_step_and_of_a_question_prints_its_figures() -> None:
    for number, step in enumerate(STEPS[:3], 1):
        assert compared(card_code(step_card(number, step, dict(stream(step.figures))), "attn-tui learn")) == ""
    [(number, question), *_] = [(at, each) for at, each in enumerate(QUESTIONS, 1) if each.figures]
    assert (
        compared(card_code(question_card(number, question, dict(stream(question.figures))), "attn-tui learn")) == ""
    )


@for_each(
    "layer",
    [
        LayerShape(),
        LayerShape(kv_heads=2, bias="all", mask="none", batch=3),
        *(preset.layer for preset in PRESETS.values()),
    ],
)
def test_the_code_of_a_cost_counts_the_same(layer: LayerShape) -> None:
    assert compared(cost_code(cost(layer), "attn-tui cost"), least=0) == ""


def test_the_code_of_a_checked_head_prints_what_limits_apply_to() -> None:
    capture = open_capture(sample_path())
    *_, (_, found) = measure(capture, capture.layers[2], 3, None, None)
    assert found is not None
    text = checked_code(opened(sample_path()), found, "attn-tui check")
    assert len(expected_in(text)) == 6
    assert compared(text) == ""


@pytest.mark.parametrize("same", [True, False])
def test_the_code_of_a_pair_prints_the_figures_of_both(same: bool, tmp_path: Path) -> None:
    done: tuple[dict[str, float], ...] = ({}, {"scale": 1.0})
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.mkdir()
    one, other = (attended(path, "lse", each) for path, each in zip(paths, (done[0], done[not same]), strict=True))
    found = compare(open_capture(one), open_capture(other)).heads[1]
    text = pair_code(opened(one), opened(other), found, "attn-tui compare")
    assert ("nothing differs" in text) is same
    assert expected_in(text)["divergence"][0].value == pytest.approx(found.divergence, rel=1e-3)
    assert compared(text) == ""


def shown_of(run: Path, at: int | None = None) -> RunSnapshot:
    """Return what the Watch pane shows of a run."""
    history: tuple[WatchStep, ...] = ()
    cursor, more = START, True
    while more:
        news = poll(run, cursor)
        history, cursor, more = added(history, news.steps), news.cursor, news.more
    found = snapshot(history, 100.0, at)
    assert found is not None
    return found


def test_the_code_of_a_step_of_a_run_prints_the_numbers_of_its_head(tmp_path: Path) -> None:
    for step in (10, 20):
        tensors = {"q": numbers(2, 4, 6, 8, seed=step), "k": numbers(2, 4, 6, 8, seed=1)}
        save(tmp_path / f"step-{step:06}.safetensors", tensors, scale=0.7, causal=True, step=str(step))
    text = watched_code(tmp_path, shown_of(tmp_path, 10), 0, 2, "attn-tui watch")
    assert "step 10" in text
    assert compared(text) == ""


def test_the_code_of_a_run_of_numbers_reads_them(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    lines = [
        {"step": step, "scale": 0.25, "scaled": False, "max_logit": [[1.0, 2.5 * step]], "entropy": [[1.5, None]]}
        for step in (1, 2, 3)
    ]
    text = "".join(f"{json.dumps({'schema': 'attn-tui/watch-1', **line})}\n" for line in lines)
    run.write_text(text + '{"schema": "attn-tui/wat')  # a line that is being written
    program = watched_code(run, shown_of(run, 2), 0, 1, "attn-tui watch")
    assert [found[0].value for found in expected_in(program).values()] == [1.25]
    assert compared(program) == ""
    run.write_text(json.dumps({"schema": "attn-tui/watch-1", "step": 1, "max_logit": [[None, 1.0]]}) + "\n")
    with pytest.raises(InputError, match="no figure"):
        watched_code(run, shown_of(run), 0, 0, "attn-tui watch")


@pytest.mark.parametrize("name", ['a"b.npz', "a\nb.npz", "a\\.npz", "a\udc80.npz"])
def test_a_file_with_any_name_is_opened_by_it(name: str) -> None:
    def called(path: str, **given: str) -> tuple[str, dict[str, str]]:
        return path, given

    found = eval(opened(Path(name), Hints("batch,token", "hidden")), {"attn_tui": SimpleNamespace(open=called)})
    assert found == (name, {"axes": "batch,token", "mask_true": "hidden"})

"""The code of a head of a run, and of a head that is checked: it prints the numbers of the screen or the check."""

import json
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.check import measure
from attn_tui.core.diagnosis.reading import file_configuration
from attn_tui.core.export.code.captured.checked import checked_code
from attn_tui.core.export.code.captured.watched import watched_code
from attn_tui.core.export.code.program import Dialect, NoCodeError
from attn_tui.core.watching.history import added
from attn_tui.core.watching.poll import START, poll
from attn_tui.core.watching.snapshot import Snapshot, snapshot
from attn_tui.core.watching.step import Step
from capture_files import Array, numbers, save
from printed_code import INSTALLED, compared, expected_in, lines_of

SHOWN = np.arange(6) < np.array([6, 3])[:, np.newaxis]  # (texts, keys)
BESIDE: dict[str, dict[str, Array]] = {
    "nothing": {},
    "a mask": {"mask": SHOWN},
    "a bias": {"bias": numbers(1, 4, 6, 6, seed=3)},
    "sinks": {"sinks": np.array([0.5, -1, 0, 2], np.float32)},
    "scales of queries": {"scales": np.linspace(0.1, 1, 24).reshape(4, 6).astype(np.float32), "mask": SHOWN},
}


def capture_of(path: Path, beside: dict[str, Array], **about: object) -> Path:
    tensors = {"q": numbers(2, 4, 6, 8), "k": numbers(2, 4, 6, 8, seed=1)} | beside
    return save(path, tensors, **({} if "scales" in beside else {"scale": 0.7}), **about)


def shown_of(run: Path, at: int | None = None) -> Snapshot:
    """Return what the Watch pane shows of a run."""
    history: tuple[Step, ...] = ()
    cursor, more = START, True
    while more:
        news = poll(run, cursor)
        history, cursor, more = added(history, news.steps), news.cursor, news.more
    found = snapshot(history, 100.0, at)
    assert found is not None
    return found


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", [*BESIDE])
def test_the_code_of_a_captured_step_prints_its_numbers(
    name: str, causal: bool, dialect: Dialect, tmp_path: Path
) -> None:
    for step in (10, 20):
        capture_of(tmp_path / f"step-{step:06}.safetensors", BESIDE[name], causal=causal, step=str(step))
    text = watched_code(tmp_path, shown_of(tmp_path, 10), 0, 2, dialect, "attn-tui watch")
    assert "step-000010" in text
    assert [*expected_in(text)][:2] == ["largest |logit|", "entropy / ln n"]
    assert compared(text) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", [*BESIDE])
def test_the_code_of_a_capped_head_prints_its_largest_logit_before_the_cap(
    name: str, causal: bool, dialect: Dialect, tmp_path: Path
) -> None:
    capture_of(tmp_path / "step-000010.safetensors", BESIDE[name], causal=causal, softcap=0.25)
    text = watched_code(tmp_path, shown_of(tmp_path), 0, 2, dialect, "attn-tui watch")
    assert expected_in(text)["largest |logit|"][0].value > 0.25
    assert compared(text) == ""


def test_the_code_of_a_run_of_numbers_reads_them(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    lines = [
        {"step": step, "scale": 0.25, "scaled": False, "max_logit": [[1.0, 2.5 * step]], "entropy": [[1.5, None]]}
        for step in (1, 2, 3)
    ]
    text = "".join(f"{json.dumps({'schema': 'attn-tui/watch-1', **line})}\n" for line in lines)
    run.write_text(text + '{"schema": "attn-tui/wat')  # a line that is being written
    program = watched_code(run, shown_of(run, 2), 0, 1, "python", "attn-tui watch")
    assert {name: found[0].value for name, found in expected_in(program).items()} == {"largest |logit|": 1.25}
    assert compared(program) == ""
    assert lines_of(program) <= 6


def test_a_head_without_numbers_has_no_code(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    run.write_text(json.dumps({"schema": "attn-tui/watch-1", "step": 1, "max_logit": [[None, 1.0]]}) + "\n")
    with pytest.raises(NoCodeError, match="no figure"):
        watched_code(run, shown_of(run), 0, 0, "python", "attn-tui watch")


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("name", [*BESIDE])
def test_the_code_of_a_checked_head_prints_what_limits_apply_to(name: str, dialect: Dialect, tmp_path: Path) -> None:
    paths = [capture_of(tmp_path / "x.safetensors", BESIDE[name], causal=True)]
    paths += [sample_path()] if name == "nothing" else []
    for path in paths:
        capture = open_capture(path)
        *_, (_, found) = measure(capture, capture.layers[0], 3, file_configuration(capture), None)
        assert found is not None
        text = checked_code(capture, found, dialect, "attn-tui check")
        assert len(expected_in(text)) == 6
        assert compared(text) == ""
        assert lines_of(text) <= 30

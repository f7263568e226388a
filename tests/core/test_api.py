"""The library: the same numbers as the commands."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.tui.cli.main import main

SMALL: dict[str, Any] = {"n_keys": 16, "n_queries": 8, "batch": 4}
WORDS = ["--n-keys", "16", "--n-queries", "8", "--batch", "4"]
WRONG = Path(__file__).parents[1] / "data" / "wrong-scale.safetensors"


def test_importing_loads_neither_numpy_nor_torch() -> None:
    code = "import sys, attn_tui; print([name for name in ('numpy', 'torch', 'textual') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_results_are_what_the_commands_print(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> Any:
        main([*words, "--format", "json"])
        return json.loads(capsys.readouterr().out)

    assert attn_tui.measure(d_k=8, **SMALL).to_dict() == printed("report", "--d-k", "8", *WORDS)
    swept, command = attn_tui.sweep([16, 4], **SMALL).to_dict(), printed("sweep", "--d-k", "4,16", *WORDS)
    assert swept["points"] == command["points"]
    assert attn_tui.diagnose(WRONG).to_dict() == printed("diagnose", str(WRONG))
    assert attn_tui.check(WRONG).to_dict() == printed("check", str(WRONG))
    assert attn_tui.compare(WRONG, WRONG).to_dict() == printed("compare", str(WRONG), str(WRONG))


def test_a_sweep_gives_arrays_over_ascending_d_k() -> None:
    swept = attn_tui.sweep([64, 4, 16], **SMALL)
    assert swept.d_k.tolist() == [4, 16, 64]
    for side in ("a", "b"):
        values, errors, exact = (each("entropy", side) for each in (swept.values, swept.stderrs, swept.exact))
        assert np.all(np.abs(values - exact) < 6 * errors)
    assert np.isnan(swept.exact("dead_rows")).all()


def test_a_head_has_weights_under_any_scale() -> None:
    capture = attn_tui.open(sample_path())
    assert len(capture) == len([*capture]) == sum(layer.heads for layer in capture.layers)
    head = capture[0, 2]
    weights = head.weights()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert head.weights("0.001*1/sqrt(d)").max() < weights.max()
    entropy = head.measure().measured["entropy"].value
    assert entropy is not None
    some = np.where(weights > 0, weights, 1)
    assert np.isclose(-(some * np.log(some)).sum(-1).mean(), entropy, rtol=1e-4, atol=1e-6)
    with pytest.raises(KeyError, match="no layer 9"):
        capture[9, 0]


def test_what_is_not_accepted_says_what_is() -> None:
    for wrong, words in (
        (lambda: attn_tui.measure(dk=4), "did you mean d_k"),
        (lambda: attn_tui.measure(d_k=0), "d_k"),
        (lambda: attn_tui.sweep([4]).values("entropi"), "did you mean entropy"),
        (lambda: attn_tui.diagnose(sample_path(), expect="1/sqrt(x)"), "unknown name x"),
        (lambda: attn_tui.diagnose(sample_path(), expect="ssmax"), "more than d_k"),
        (lambda: attn_tui.check(sample_path(), max_logits=3), "did you mean max_logit"),
        (lambda: attn_tui.open("absent.npz"), "absent.npz"),
    ):
        with pytest.raises(attn_tui.InputError, match=words):
            wrong()


def test_a_repr_is_short() -> None:
    measured = attn_tui.measure(d_k=8, **SMALL)
    capture = attn_tui.open(sample_path())
    found = attn_tui.diagnose(WRONG), attn_tui.check(capture, max_logit=1), attn_tui.compare(WRONG, capture)
    assert "differ" in repr(found[2])
    for each in (measured, attn_tui.sweep([4, 8], **SMALL), capture, capture[0, 0], capture[0, 0].measure(), *found):
        assert len(repr(each).splitlines()) <= 10
        assert len(repr(each)) < 2_000


def test_heads_that_are_not_judged_fail_only_a_strict_check() -> None:
    assert attn_tui.check(sample_path()).ok
    assert not attn_tui.check(sample_path(), strict=True).ok
    assert not attn_tui.diagnose(sample_path()).healthy
    assert not attn_tui.check(sample_path(), max_logit=1).ok
    assert attn_tui.check(sample_path(), max_logit=1, allow=["*:max-logit"]).ok


def test_every_result_prints_in_ten_lines() -> None:
    capture, wrong = attn_tui.open(sample_path()), attn_tui.open(WRONG)
    results = (
        *attn_tui.predict(d_k=8), attn_tui.sweep([4, 8], n_keys=8, batch=2), capture, capture[0, 2],
        capture[0, 2].measure(), capture[0, 2].replay(), wrong[1, 0].diagnose(), attn_tui.diagnose(wrong),
        attn_tui.RULES, attn_tui.STATISTICS,
    )  # fmt: skip
    for result in results:
        assert len(repr(result).splitlines()) <= 10
        assert len(repr(result)) < 1500


def test_a_replay_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    replay = attn_tui.open(sample_path())[0, 2].replay().to_dict()
    words = ["inspect", str(sample_path()), "--layer", "0", "--head", "2", "--rules", "all", "--format", "json"]
    assert main(words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert replay["heads"][0]["replayed"] == printed["heads"][0]["replayed"]

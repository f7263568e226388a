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
from attn_tui.core.claims import catalogue
from attn_tui.tui.cli.main import main

SMALL: dict[str, Any] = {"n_keys": 16, "n_queries": 8, "batch": 4}
WORDS = ["--n-keys", "16", "--n-queries", "8", "--batch", "4"]
WRONG = Path(__file__).parents[1] / "data" / "wrong-scale.safetensors"
CLAIMS = ("three-matrices", "heads-are-free")
RUN = WRONG.with_name("run.jsonl")


def test_importing_loads_neither_numpy_nor_torch() -> None:
    code = "import sys, attn_tui; print([name for name in ('numpy', 'torch', 'textual') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def results() -> dict[str, Any]:
    """Return every kind of result of the library, by the command that prints it."""
    small, wrong, sample = " ".join(WORDS), attn_tui.open(WRONG), sample_path()
    return {
        f"report --d-k 8 {small}": attn_tui.measure(d_k=8, **SMALL),
        f"sweep --d-k 4,16 {small}": attn_tui.sweep([16, 4], **SMALL),
        f"sweep --d-k 4,16 --vary scale=d_k,sqrt_d_k {small}": attn_tui.sweep(
            [16, 4], vary=("scale", ["d_k", "sqrt_d_k"]), **SMALL
        ),
        "cost --model llama-3-8b --batch 2": attn_tui.cost("llama-3-8b", batch=2),
        "claims": attn_tui.claims(*CLAIMS),
        "learn q1": attn_tui.learn("q1"),
        f"watch {RUN} --once --step 3 --max-logit 10": attn_tui.watch(RUN, step=3, max_logit=10),
        f"inspect {sample} --layer 0 --head 2": attn_tui.open(sample)[0, 2].measure(),
        f"inspect {sample} --layer 0 --head 2 --rules all": attn_tui.open(sample)[0, 2].replay(),
        f"diagnose {WRONG}": attn_tui.diagnose(WRONG),
        f"diagnose {WRONG} --layer 1 --head 0": wrong[1, 0].diagnose(),
        f"check {WRONG}": attn_tui.check(WRONG),
        f"compare {WRONG} {WRONG}": attn_tui.compare(WRONG, wrong),
    }


def test_results_are_what_the_commands_print(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", [each for each in catalogue.CLAIMS if each.id in CLAIMS])
    for words, result in results().items():
        main([*words.split(), "--format", "json"])
        printed = json.loads(capsys.readouterr().out)
        found = result.to_dict()
        for each in (printed, found):
            each.pop("command", None)  # of the library, the call
        if words.endswith("--head 2"):
            del printed["heads"][0]  # the unscaled head, which the command adds
        assert found == printed, words
        if "learn" not in words and not words.endswith("--head 2"):
            main([*words.split(), "--format", "csv"])
            assert len(result.rows()) == len(capsys.readouterr().out.splitlines()) - 1
        assert len(repr(result).splitlines()) <= 10
        assert len(repr(result)) < 2000
        for part in ("measurement", "result", "capture", "file", "replay", "comparison"):
            assert len(repr(getattr(result, part, ""))) < 2000


def test_an_exact_value_is_that_of_the_report() -> None:
    exact, measured = attn_tui.predict(d_k=8, **SMALL), attn_tui.measure(d_k=8, **SMALL).to_dict()
    told = exact.to_dict()
    assert told["parameters"] == measured["parameters"]
    for one, other in zip(told["columns"], measured["columns"], strict=True):
        assert one["saturation"] == other["saturation"]
        assert {name: one["theory"][name] for name in other["theory"]} == other["theory"]
    assert [column.values["logit_variance"] for column in exact] == pytest.approx([8, 1])


def test_a_sweep_over_two_axes_is_a_map_with_labels() -> None:
    swept = attn_tui.sweep([16, 4], n_keys=[32, 8], n_queries=4, batch=2)
    assert swept.axes == {"n_keys": [8, 32], "d_k": [4, 16]}
    entropy = swept.values("entropy")
    assert entropy.shape == (2, 2)
    one = attn_tui.sweep([4, 16], n_keys=32, n_queries=4, batch=2)
    np.testing.assert_allclose(entropy[1], one.values("entropy"), rtol=1e-5)
    assert np.all(np.diff(entropy, axis=0) > 0)  # more keys


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


def test_heads_that_are_not_judged_fail_only_a_strict_check() -> None:
    assert attn_tui.check(sample_path()).ok
    assert not attn_tui.check(sample_path(), strict=True).ok
    assert not attn_tui.diagnose(sample_path()).healthy
    assert not attn_tui.check(sample_path(), max_logit=1).ok
    assert attn_tui.check(sample_path(), max_logit=1, allow=["*:max-logit"]).ok


def test_arrays_are_diagnosed_as_a_file_of_them_is() -> None:
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 24, 16))
    weights = np.exp(0.25 * q @ k.mT)
    arrays = {"q": q, "k": k, "v": v, "o": weights @ v / weights.sum(axis=-1, keepdims=True)}
    assert attn_tui.diagnose(arrays, expect="1/sqrt(d)").healthy
    assert not attn_tui.diagnose(arrays, expect="1/d").healthy


def test_declarations_print_in_ten_lines() -> None:
    capture = attn_tui.open(sample_path())
    for each in (
        *attn_tui.predict(d_k=8),
        capture,
        capture[0, 2],
        capture.layers[0],
        attn_tui.RULES,
        attn_tui.STATISTICS,
    ):
        assert len(repr(each).splitlines()) <= 10
        assert len(repr(each)) < 1500

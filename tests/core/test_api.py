"""The library: the same numbers as the commands."""

import inspect
import json
import math
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.learning.claims import catalogue
from attn_tui.tui.cli.main import main
from cases import for_each

SMALL: dict[str, Any] = {"n_keys": 16, "n_queries": 8, "batch": 4}
WORDS = ["--n-keys", "16", "--n-queries", "8", "--batch", "4"]
WRONG = Path(__file__).parents[1] / "data" / "wrong-scale.safetensors"
CLAIMS = ("three-matrices", "heads-are-free")
RUN = WRONG.with_name("run.jsonl")


def test_importing_loads_neither_numpy_nor_torch() -> None:
    code = "import sys, attn_tui; print([name for name in ('numpy', 'torch', 'textual') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


LOOKED_AT = """
import sys
sys.modules.update(torch=None, jax=None)  # which are not installed
import attn_tui, inspect, pydoc
for name in dir(attn_tui):
    assert hasattr(attn_tui, name), name
assert {*attn_tui.__all__} < {name for name, _ in inspect.getmembers(attn_tui)}
for name, value in inspect.getmembers(attn_tui, callable):
    assert name.startswith("_") or value.__doc__ and inspect.signature(value), name
assert "every: 'int | None' = None" in str(inspect.signature(attn_tui.record))
assert "Record the attention of a model" in pydoc.render_doc(attn_tui)
assert attn_tui.testing.assert_attention_scale.__doc__
from attn_tui import *
assert open is attn_tui.open and record is attn_tui.record
"""


def test_every_name_can_be_looked_at_without_optional_libraries() -> None:
    subprocess.run([sys.executable, "-c", LOOKED_AT], check=True)


def asserted() -> None:
    attn_tui.testing.assert_attention_scale(cast("Any", None))


def recorded_jax() -> None:
    with attn_tui.record_jax("a.safetensors"):
        pass


@pytest.mark.parametrize(
    ("call", "library", "remedy"),
    [
        (lambda: attn_tui.record(None, "a.safetensors"), "torch", "attn_tui.record needs PyTorch: pip install"),
        (asserted, "torch", "attn_tui.testing needs PyTorch: pip install"),
        (recorded_jax, "jax", "attn_tui.record_jax needs JAX: pip install jax"),
    ],
)
def test_a_call_says_which_library_it_lacks(
    call: Callable[[], object], library: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "attn_tui.core.recorder.recorder", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=remedy) as raised:
        call()
    assert raised.value.name == library


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
    found_by_words = results()  # before, so that all claims are known to what this loads
    monkeypatch.setattr(catalogue, "CLAIMS", [each for each in catalogue.CLAIMS if each.id in CLAIMS])
    for words, result in found_by_words.items():
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
    assert np.array_equal(head.weights(np.float32(0.125)), head.weights("0.125"))


def one_layer(capture: attn_tui.Capture, place: Any) -> Sequence[attn_tui.Head]:
    return cast("Any", capture)[place]


def test_a_capture_is_indexed_by_numbers_names_and_parts_of_names() -> None:
    capture = attn_tui.open(sample_path())
    places: tuple[Any, ...] = (1, -5, np.int64(1), "encoder.layer.1.attention.self", "layer.1")
    for each in places:
        assert [(head.layer.index, head.head) for head in one_layer(capture, each)] == [
            (1, head) for head in range(12)
        ]
    assert (capture[-1, -1].layer, capture[-1, -1].head) == (capture.layers[-1], 11)
    wrong: tuple[tuple[Any, str], ...] = (
        (9, "no layer 9: there are layers 0–5"),
        (-7, "no layer -7"),
        ("layer.9", "no layer layer.9"),
        ((0, 12), "heads are 0 to 11"),
        ("layer", "6 layers are 'layer'"),
        ((0, -13), "heads are 0 to 11"),
    )
    for place, words in wrong:
        with pytest.raises(KeyError, match=words):
            capture[place]


def test_numbers_of_numpy_are_numbers() -> None:
    assert attn_tui.measure(d_k=np.int64(8), scale=np.float32(0.5), **SMALL).to_dict() == (
        attn_tui.measure(d_k=8, scale=0.5, **SMALL).to_dict()
    )
    assert attn_tui.measure(d_k=8, scale=0.5, **SMALL).parameters.multiplier == 0.5
    swept = attn_tui.sweep(np.array([4, 8]), n_keys=np.array([8, 16]), n_queries=4, batch=2)
    assert swept.to_dict() == attn_tui.sweep([4, 8], n_keys=[8, 16], n_queries=4, batch=2).to_dict()
    varied = attn_tui.sweep([4], vary=("scale", (0.5, "d_k")), **SMALL)
    assert varied.axes == {"scale": ["0.5", "d_k"], "d_k": [4]}
    assert attn_tui.cost(heads=np.int64(4)).to_dict() == attn_tui.cost(heads=4).to_dict()
    assert attn_tui.watch(RUN, step=np.int64(3)).to_dict() == attn_tui.watch(RUN, step=3).to_dict()


@for_each(
    "given",
    [
        {"n_keys": [8, 16], "mask": "causal"},
        {"n_keys": 8},
        {"vary": ("scale", [0.5, "d_k"])},
        {"vary": ("seed", [3, 1])},
    ],
)
def test_a_sweep_says_the_call_that_gives_it_again(given: dict[str, Any]) -> None:
    swept = attn_tui.sweep([8, 4], **{**SMALL, **given})
    again = eval(swept.called, {"attn_tui": attn_tui})
    assert (again.to_dict(), again.called) == (swept.to_dict(), swept.called)


def test_results_can_be_pickled() -> None:
    for words, result in results().items():
        again = pickle.loads(pickle.dumps(result))
        assert again.to_dict() == result.to_dict(), words
        assert type(result).__name__ in attn_tui.__all__


def test_what_is_not_accepted_says_what_is() -> None:
    for wrong, words in (
        (lambda: attn_tui.measure(dk=4), "did you mean d_k"),
        (lambda: attn_tui.measure(d_k=0), "d_k"),
        (lambda: attn_tui.sweep([4]).values("entropi"), "did you mean entropy"),
        (lambda: attn_tui.diagnose(sample_path(), expect="1/sqrt(x)"), "unknown name x"),
        (lambda: attn_tui.diagnose(sample_path(), expect="ssmax"), "more than d_k"),
        (lambda: attn_tui.check(sample_path(), max_logits=3), "did you mean max_logit"),
        (lambda: attn_tui.check(sample_path(), max_logit=math.nan), "max_logit: must be a number from 0 up, not nan"),
        (lambda: attn_tui.check(sample_path(), max_logit=10**400), "max_logit: must be a number from 0 up, not 1000"),
        (
            lambda: attn_tui.diagnose(sample_path(), config=cast("Any", "config.json")),
            "config: must be a JSON object",
        ),
        (lambda: attn_tui.sweep([4], n_keys=[]), "keys: "),
        (lambda: attn_tui.sweep([4], n_keys=cast("Any", np.float64(8.5))), "keys: must be a whole number"),
        (lambda: attn_tui.measure(scale=0.5, multiplier=2), "scale: 0.5 is a multiplier already"),
        (
            lambda: attn_tui.sweep([4], **SMALL).values("entropy", cast("Any", "c")),
            "side: must be one of a, b, not 'c'",
        ),
        (lambda: attn_tui.learn(13), "13: must be a step from 1 to 12"),
        (lambda: attn_tui.learn("q9x"), "q9x: unknown name"),
        (lambda: attn_tui.claims("no-such-claim"), "no-such-claim: unknown name"),
        (lambda: attn_tui.open([]), "must be a file, a folder, a capture or calls of attn_tui.call, not list"),
        (lambda: attn_tui.open(cast("Any", [3])), "must be a file, a folder, a capture or calls"),
        (lambda: attn_tui.measure(scale=cast("Any", True)), "scale"),
        (lambda: attn_tui.cost(heads=None), "heads: must be a whole number"),
        (lambda: attn_tui.open("absent.npz"), "absent.npz"),
    ):
        with pytest.raises(attn_tui.InputError, match=words):
            wrong()


def test_what_belongs_to_one_head_is_not_said_of_several() -> None:
    diagnosis = attn_tui.diagnose(WRONG)
    with pytest.raises(
        AttributeError, match=r"24 heads have a verdict each: iterate over the diagnosis, or ask capture\["
    ):
        _ = diagnosis.verdict
    assert not hasattr(diagnosis, "verdict")
    assert inspect.getmembers(diagnosis)
    found = Counter(each.verdict.word for each in diagnosis.heads)
    assert found["cause"] == 10
    each = [head.diagnose().verdict.word for head in attn_tui.open(WRONG)]
    assert each == [head.verdict.word for head in diagnosis.heads]


def test_a_number_of_several_layers_is_not_taken_as_that_of_the_first(tmp_path: Path) -> None:
    for step in (1, 2):
        shutil.copy(WRONG, tmp_path / f"step-{step}.safetensors")
    capture = attn_tui.open(tmp_path)
    with pytest.raises(KeyError, match=r"2 layers are 0: ask for one as 'step-1\.safetensors: encoder\.layer\.0"):
        capture[0, 0]
    assert {head.layer.file for head in capture} == {"step-1.safetensors", "step-2.safetensors"}
    for layer in capture.layers:
        assert capture[layer.name, 0].layer is layer
    same = [attn_tui.call(np.eye(4)[None, None], np.eye(4)[None, None], scale=0.5, name="shared")] * 2
    attn_tui.save(tmp_path / "shared.safetensors", same)
    with pytest.raises(KeyError, match="2 layers are 'shared': ask for one as 0"):
        attn_tui.open(tmp_path / "shared.safetensors")["shared", 0]


def test_heads_that_are_not_judged_fail_only_a_strict_check() -> None:
    assert attn_tui.check(sample_path()).ok
    assert not attn_tui.check(sample_path(), strict=True).ok
    assert not attn_tui.diagnose(sample_path()).healthy
    assert not attn_tui.check(sample_path(), max_logit=1).ok
    assert attn_tui.check(sample_path(), max_logit=1, allow=["*:max-logit"]).ok


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

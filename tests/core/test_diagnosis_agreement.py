"""Two kinds of evidence of one head: where they are of different computations, nothing is decided."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.diagnosis.subject import Kind, Subject
from attn_tui.core.diagnosis.verdict import diagnose
from attn_tui.tui.cli.main import main
from capture_files import save
from cases import for_each
from faults import FAULTS, injected
from injection import Case, Head, case_of, random_head, subject_of

HEAD = random_head(64, 96, True)
AFTER_SOFTMAX = {"dropout", "axis"}
OF_LSE = {"lse base 2", "lse ln 2"}  # what outputs and weights do not show
OF_SCORES = sorted(FAULTS.keys() - AFTER_SOFTMAX - OF_LSE)


def joined(kinds: dict[Kind, Case], number_format: str = "float32") -> Subject:
    """One subject with evidence of several cases; what the file says is in the first one."""
    subjects = [subject_of(case, number_format, kind) for kind, case in kinds.items()]
    return replace(subjects[0], evidence=tuple(each.evidence[0] for each in subjects))


def cases(fault: str, head: Head = HEAD, number_format: str = "float32") -> tuple[Case, Case]:
    """The head as its file says, and with the fault; both files say the same."""
    wrong = injected(head, number_format, fault)
    right = replace(
        wrong, used_q=wrong.q, used_k=wrong.k, used_v=wrong.v, used_seen=wrong.seen, used_bias=wrong.bias,
        multiplier=wrong.facts.scale, softcap=wrong.facts.softcap, sink=wrong.facts.sink, row_factors=None,
        extra_scores=None,
    )  # fmt: skip
    return right, wrong


@pytest.mark.parametrize("fault", OF_SCORES)
@pytest.mark.parametrize("kind", ["weights", "o"])
def test_a_right_log_sum_exp_does_not_pass_wrong_weights_or_outputs(fault: str, kind: Kind) -> None:
    right, wrong = cases(fault)
    assert diagnose(joined({kind: wrong})).word == "cause"
    found = diagnose(joined({"lse": right, kind: wrong}))
    assert (found.word, found.conflict) == ("undecided", True)


@pytest.mark.parametrize("fault", ["missing", "causal lost", "window extra", "sink extra", "tiled", "alibi"])
def test_a_wrong_log_sum_exp_is_not_passed_by_right_outputs(fault: str) -> None:
    right, wrong = cases(fault)
    found = diagnose(joined({"lse": wrong, "o": right}))
    assert (found.word, found.conflict) == ("undecided", True)


def test_both_kinds_that_disagree_are_said() -> None:
    right, wrong = cases("missing")
    says = str(diagnose(joined({"lse": right, "o": wrong})).says)
    assert "log-sum-exp: × 0.125, as expected" in says
    assert "output: × 1, should be × 0.125 = 1/√64" in says


@pytest.mark.parametrize("fault", OF_SCORES)
def test_evidence_of_one_faulty_computation_agrees(fault: str) -> None:
    _, wrong = cases(fault)
    of = [diagnose(joined({kind: wrong})) for kind in ("lse", "weights", "o")]
    found = diagnose(joined({"lse": wrong, "weights": wrong, "o": wrong}))
    assert found.word == of[0].word
    assert found.cause == of[0].cause


@for_each(("ratio", "conflict"), [(1.01, False), (1.04, True)])
def test_multipliers_without_a_name_disagree_if_they_differ_by_more_than_two_per_cent(
    ratio: float, conflict: bool
) -> None:
    one, other = injected(HEAD, "float32", "temperature"), injected(HEAD, "float32", "temperature")
    other.multiplier *= ratio
    found = diagnose(joined({"lse": one, "o": other}))
    assert (found.conflict, found.cause) == (conflict, None if conflict else "scale-other")


def test_a_log_sum_exp_of_base_2_is_a_cause_beside_right_outputs() -> None:
    found = diagnose(joined({"lse": injected(HEAD, "float32", "lse base 2"), "o": case_of(HEAD, "float32")}))
    assert found.cause == "scale-base2"


@pytest.mark.parametrize("factor", [0.5, 1.5, 0.7071, 0.96])
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
@pytest.mark.parametrize("kinds", [("lse", "o"), ("o",)])
def test_a_factor_of_outputs_is_found(factor: float, number_format: str, kinds: tuple[Kind, ...]) -> None:
    case = case_of(HEAD, number_format)
    subject = joined(dict.fromkeys(kinds, case), number_format)
    o = subject.evidence[-1]
    found = diagnose(replace(subject, evidence=(*subject.evidence[:-1], replace(o, values=o.values * factor))))
    assert (found.word, found.cause) == ("cause", "outputs-scaled")
    [said] = re.findall(r"outputs are × ([\d.]+) of", str(found.says))
    assert float(said) == pytest.approx(factor, rel=1e-3)


def written(path: Path, kind: str, factor: float = 1.0, scale: float = 0.25, **said: object) -> Path:
    rng = np.random.default_rng(5)
    q, k, v = rng.standard_normal((3, 1, 2, 40, 16)).astype(np.float32)
    z = q @ k.mT
    lse = np.log(np.exp(0.25 * z).sum(-1))
    p = np.exp(scale * z)
    p /= p.sum(-1, keepdims=True)
    o = {"o": p @ v * np.float32(factor), "v": v} if kind == "o" else {"weights": p}
    tensors = {f"layers.0.attn.{name}": x for name, x in ({"q": q, "k": k, "lse": lse} | o).items()}
    layer = {"name": "0", "index": 0, "causal": False} | said
    return save(path, tensors, schema="attn-tui/qk-2", layers=[layer])


def test_strict_fails_heads_whose_evidence_disagrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = written(tmp_path / "a.safetensors", "o"), written(tmp_path / "b.safetensors", "o", scale=1.0)
    strict = ["check", "--expect", "1/sqrt(d)", "--strict"]
    assert main([*strict, str(good)]) == 0
    assert main([*strict, str(bad)]) == 1
    said = capsys.readouterr().out
    assert "output: × 1" in said
    assert said.endswith("2 heads: 2 not judged (undecided)\n")


def test_a_factor_of_outputs_that_the_file_says_is_no_finding(tmp_path: Path) -> None:
    told = written(tmp_path / "a.safetensors", "o", 0.5, output_factor=0.5)
    untold = written(tmp_path / "b.safetensors", "o", 0.5)
    wrong = written(tmp_path / "c.safetensors", "o", 0.25, output_factor=0.5)
    check = ["check", "--expect", "1/sqrt(d)", "--strict"]
    assert [main([*check, str(path)]) for path in (told, untold, wrong)] == [0, 1, 1]

"""Every output tells the facts of a fault once: layers and heads, what q·k is multiplied by, and what it should be.

Products of the cases, by hand: 1/√16 is 0.25; of q that arrives × 0.25, × 0.0625; of q that arrives × 4, × 1.
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import attn_tui
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.summary import file_summary
from attn_tui.tui.cli.main import main
from cli_runner import Captured
from pairs import HEADS, written
from stacks import Faults, stack

EXPECT = ("--expect", "1/sqrt(d)")
SHOULD = "× 0.25 = 1/√16"
LAYERS = 4


class Told(NamedTuple):
    """The facts of one fault."""

    layers: tuple[int, ...]
    place: str
    product: float
    inside: float
    cause: str

    @property
    def number(self) -> str:
        return f"× {self.product:g}"


class Case(NamedTuple):
    """What is done in a stack of four layers, and what is to be told."""

    faults: Faults
    told: tuple[Told, ...] = ()
    downstream: int = 0  # heads, beside a run without faults

    @property
    def wrong(self) -> int:
        return HEADS * sum(len(each.layers) for each in self.told)


TWICE = {"inside": 0.25, "scale": 0.25}
MISSING = {"scale": 1.0}
UNDONE = {"inside": 4.0, "scale": 0.25}
CASES = {
    "right": Case({}),
    "right, scaled inside q": Case({index: {"inside": 0.25, "scale": 1.0} for index in range(LAYERS)}),
    "one layer": Case({2: TWICE}, (Told((2,), "layer 2, all 4 heads", 0.0625, 0.25, "scale-twice"),), 4),
    "every layer": Case(
        dict.fromkeys(range(LAYERS), MISSING),
        (Told((0, 1, 2, 3), "layers 0–3, all 16 heads", 1.0, 1.0, "scale-missing"),),
    ),
    "mixed": Case(
        {1: UNDONE, 2: TWICE},
        (
            Told((1,), "layer 1, all 4 heads", 1.0, 4.0, "scale-missing"),
            Told((2,), "layer 2, all 4 heads", 0.0625, 0.25, "scale-twice"),
        ),
        4,
    ),
    "the first layer": Case({0: TWICE}, (Told((0,), "layer 0, all 4 heads", 0.0625, 0.25, "scale-twice"),), 12),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Path, Path]:
    """A case, its file, and that of a run without faults."""
    found = CASES[request.param]
    folder = tmp_path_factory.mktemp("stack")
    paths = folder / "run.safetensors", folder / "reference.safetensors"
    written(stack(found.faults, "lse", "o"), paths[0])
    written(stack({}, "lse", "o"), paths[1])
    return found, *paths


def printed(words: list[str], capsys: Captured) -> tuple[int, str]:
    code = main(words)
    return code, capsys.readouterr().out


def assert_told(told: tuple[Told, ...], parts: list[str], *more: str) -> None:
    """One part of a text has all facts of each fault, and the parts are as many as faults."""
    assert len(parts) == len(told), parts
    for each, part in zip(told, parts, strict=True):
        for words in (each.place, f"(layers.{each.layers[0] if len(each.layers) == 1 else '*'}.attn)", SHOULD, *more):
            assert words in part
        assert re.search(rf"{each.number}(?![\d.])", part), part


def blocks(text: str) -> list[str]:
    """The blocks of faults, each on one line."""
    return [" ".join(block.split()) for block in text.split("\n\n") if "cause: " in block]


def test_check(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    code, out = printed(["check", str(path), *EXPECT, "--strict"], capsys)
    assert code == bool(found.told)
    assert_told(found.told, blocks(out))
    assert all(f"cause: {each.cause}" in block for each, block in zip(found.told, blocks(out), strict=True))
    right = LAYERS * HEADS - found.wrong
    counts = ([f"{found.wrong} wrong"] if found.wrong else []) + ([f"{right} right"] if right else [])
    assert out.splitlines()[-1] == f"{LAYERS * HEADS} heads: {', '.join(counts)}"
    if not found.told:
        assert SHOULD in out
        assert "layers 0–3, all 16 heads (layers.*.attn)" in out


def test_check_for_github(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    code, out = printed(["check", str(path), *EXPECT, "--format", "github"], capsys)
    assert code == bool(found.told)
    assert_told(found.told, out.splitlines(), f"::error file={path},")
    assert all(
        f"title=attn-tui {each.cause}::" in line for each, line in zip(found.told, out.splitlines(), strict=True)
    )


def test_check_for_junit(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    _, out = printed(["check", str(path), *EXPECT, "--format", "junit"], capsys)
    failed = [case for case in ElementTree.fromstring(out)[0] if case.find("failure") is not None]
    assert len(failed) == found.wrong
    every = [each for each in found.told for _ in range(len(each.layers) * HEADS)]
    for each, one in zip(every, failed, strict=True):
        failure = one.find("failure")
        assert failure is not None
        assert failure.get("type") == each.cause
        text = f"{failure.get('message')} {failure.text}"
        assert re.search(rf"{each.number}(?![\d.])", text)
        assert SHOULD in text


def test_check_in_json(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    code, out = printed(["check", str(path), *EXPECT, "--format", "json"], capsys)
    said = json.loads(out)
    assert code == bool(found.told)
    places = [(each, index, head) for each in found.told for index in each.layers for head in range(HEADS)]
    assert len(said["findings"]) == len(places)
    for (each, index, head), one in zip(places, said["findings"], strict=True):
        assert (one["layer"], one["head"], one["rule"]) == (str(index), head, each.cause)
        assert (one["value"], one["limit"]) == pytest.approx((each.product, 0.25), rel=1e-4)
    assert_groups(found.told, said["groups"])


def assert_groups(told: tuple[Told, ...], said: list[dict[str, Any]]) -> None:
    assert len(said) == len(told)
    for each, group in zip(told, said, strict=True):
        places = {(one["layer"], one["head"]) for one in group["heads"]}
        assert places == {(str(index), head) for index in each.layers for head in range(HEADS)}
        assert group["cause"] == each.cause
        assert (group["multiplier"]["least"], group["multiplier"]["most"]) == pytest.approx(
            (each.product,) * 2, rel=1e-4
        )
        assert each.place in group["says"]
        assert SHOULD in group["says"]


def test_diagnose(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    code, out = printed(["diagnose", str(path), *EXPECT], capsys)
    assert code == 0
    assert_told(found.told, blocks(out))
    rows = [
        re.split(r" {2,}", line.strip()) for line in out.splitlines() if re.match(r" *\d+( and \d+|–\d+)? {2}", line)
    ]
    numbers = {each: one for one in found.told for each in one.layers}
    assert sum(len(_numbers(row[0])) for row in rows) == LAYERS
    for row in rows:
        for index in _numbers(row[0]):
            one = numbers.get(index)
            assert row[1] == "0–3"
            assert (row[2], row[-1]) == ((one.number, one.cause) if one else ("× 0.25", "right"))


def _numbers(text: str) -> list[int]:
    first, last = (
        (int(each) for each in (re.findall(r"\d+", text) * 2)[:2]) if "–" not in text else map(int, text.split("–"))
    )
    return [*range(first, last + 1)]


def test_diagnose_in_json(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, _ = case
    said = json.loads(printed(["diagnose", str(path), *EXPECT, "--format", "json"], capsys)[1])
    of = {index: each for each in found.told for index in each.layers}
    for one in said["heads"]:
        each = of.get(int(one["layer"]))
        assert one["cause"] == (each.cause if each else None)
        assert (one["multiplier"], one["expected"]) == pytest.approx((each.product if each else 0.25, 0.25), rel=1e-4)
        if each:
            assert one["inside"] == pytest.approx(each.inside)
            assert SHOULD in one["says"]
    assert_groups(found.told, [group for group in said["groups"] if group["cause"] != "healthy"])


def test_compare(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, reference = case
    code, out = printed(["compare", str(reference), str(path)], capsys)
    assert code == bool(found.told)
    first = out.split("\n\n")[1]
    if not found.told:
        assert "differ" not in first
        return
    place = "layer 0, all 4 heads" if found.told[0].place.startswith("layers") else found.told[0].place
    assert place in first
    assert re.search(rf"{found.told[0].number}, × 0\.25(?!\d)", first)
    assert f"{found.wrong} differ" in out
    assert (f"{found.downstream} downstream" in out) == bool(found.downstream)
    for each in found.told[1:]:
        after = out.partition(each.place)[2]
        assert re.search(rf"{each.number}, × 0\.25(?!\d)", after)


def test_compare_in_json(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, reference = case
    said = json.loads(printed(["compare", str(reference), str(path), "--format", "json"], capsys)[1])
    of = {index: each for each in found.told for index in each.layers}
    assert said["stages"]["multiplier"]["differs"] == found.wrong
    for one in said["heads"]:
        each = of.get(int(one["layer"]))
        assert one["first"] == ("multiplier" if each else None)
        assert one["reference"]["multiplier"] == pytest.approx(0.25, rel=1e-3)
        assert one["test"]["multiplier"] == pytest.approx(each.product if each else 0.25, rel=1e-3)
    assert sum(one["first"] is None and one["stages"]["qk"]["state"] == "downstream" for one in said["heads"]) == (
        found.downstream
    )


def test_check_against_a_baseline(case: tuple[Case, Path, Path], capsys: Captured) -> None:
    found, path, reference = case
    code, out = printed(["check", str(path), "--baseline", str(reference)], capsys)
    assert code == bool(found.told)
    told = blocks(out)
    assert len(told) == len(found.told)
    for each, block in zip(found.told, told, strict=True):
        assert each.place in block
        assert re.search(rf"{each.number}(?![\d.]).*in the baseline × 0\.25(?!\d)", block)
    assert (f"{found.downstream} downstream" in out) == bool(found.downstream)


@pytest.mark.parametrize(
    ("question", "words"),
    [(attn_tui.diagnose, str), (attn_tui.diagnose, repr), (attn_tui.check, repr)],
    ids=["str(diagnosis)", "repr(diagnosis)", "repr(check)"],
)
def test_the_library(
    case: tuple[Case, Path, Path], question: Callable[..., object], words: Callable[[object], str]
) -> None:
    found, path, _ = case
    lines = words(question(path, expect="1/sqrt(d)")).splitlines()
    assert_told(found.told, [line for line in lines if line.startswith("WRONG")])


def test_the_headline_of_a_file(case: tuple[Case, Path, Path]) -> None:
    found, path, _ = case
    heads = attn_tui.diagnose(path, expect="1/sqrt(d)").heads
    verdicts = {(each.layer.position, each.head): each.verdict for each in heads}
    for form in file_summary(open_capture(path).layers, {}, verdicts)[:2]:
        assert SHOULD in form
        if found.told:
            assert found.told[0].place in form
            assert re.search(rf"{found.told[0].number}(?![\d.])", form)
            assert ("1 more fault" in form) == (len(found.told) == 2)


def test_the_number_of_lines_does_not_grow_with_the_heads(tmp_path: Path, capsys: Captured) -> None:
    lines: list[int] = []
    for layers in (4, 12):
        path = tmp_path / f"{layers}.safetensors"
        written(stack({2: TWICE}, "lse", layers=layers), path)
        words = ["check", str(path), *EXPECT, "--min-token-spread", "0"]
        lines.append(len(printed(words, capsys)[1].splitlines()))
        assert printed([*words, "--format", "github"], capsys)[1].count("\n") == 1
    assert lines[0] == lines[1]


def test_the_assertion_of_a_model() -> None:
    torch = pytest.importorskip("torch")
    from attn_tui.testing import assert_attention_scale

    class Block(torch.nn.Module):
        scale = 0.25

        def forward(self, x: Any) -> Any:
            q = x.unflatten(-1, (4, 16)).transpose(1, 2)
            o = torch.nn.functional.scaled_dot_product_attention(q * self.scale * 4, q, q)
            return x + o.transpose(1, 2).flatten(2)

    x = torch.randn(1, 24, 64, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Sequential(Block(), Block())
    assert_attention_scale(model, x)
    model[1].scale = 0.0625
    with pytest.raises(AssertionError) as raised:
        assert_attention_scale(model, x)
    [line] = [line for line in str(raised.value).splitlines() if "WRONG" in line]
    assert all(words in line for words in ("layer 1, all 4 heads", "× 0.0625", SHOULD))

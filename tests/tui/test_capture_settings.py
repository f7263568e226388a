"""The Capture pane: number formats and soft-caps of A and B, and the comparison with a baseline."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import rule_of
from attn_tui.core.captures.settings import AS_IN_FILE, HeadSetting
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.results import Plan
from attn_tui.core.diagnosis.heads.attention import attention_row
from attn_tui.core.parameters import FIELD
from attn_tui.tui.cli.main import main
from attn_tui.tui.panes.capture.heads import CHANGE
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import ComparedHeads, CompareHeads, OpenCapture
from attn_tui.tui.panes.capture.sides import Sides
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.numbers import short
from cases import present
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]
from stage import FORMATS, Script, Stage, play, played, refusal, some_heads


def formats(pane: CapturePane) -> list[object]:
    """The formats of the columns measured."""
    return [column.apart.get("precision", "float64") for column in present(pane.measurement).columns]


@played()
async def test_shift_f_goes_through_the_formats_of_b_and_a_has_that_of_b(stage: Stage) -> None:
    pane = await stage.head()
    order = [*FIELD["precision"].choices[1:], "float64"]
    for name in order:
        await stage.press("F")
        await stage.until(lambda name=name: pane.is_current and formats(pane) == [name, name], name)
    await stage.press("f", *"bfloat", "enter")
    await stage.until(lambda: pane.is_current and formats(pane) == ["bfloat16", "bfloat16"])
    assert "--precision bfloat16" in pane.command()
    assert json.loads(pane.numbers("json"))["heads"][0]["apart"] == {"precision": "bfloat16", "arithmetic": "fused"}
    assert "ml_dtypes.bfloat16" in pane.code("python")
    await stage.at_rest()
    assert "─ bfloat16 ─" in stage.text, "above both columns"
    await stage.press("u")
    await stage.until(lambda: pane.is_current and formats(pane) == ["float64", "float64"])
    assert "--precision" not in pane.command()
    await stage.press("ctrl+r")
    await stage.until(lambda: pane.is_current and formats(pane) == ["bfloat16", "bfloat16"])


@played(size=(80, 24))
async def test_a_narrow_row_has_the_format_in_its_title_and_whole_numbers_below(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press("n", "F", "F")
    await stage.until(lambda: pane.is_current and formats(pane) == ["float16", "float16"])
    await stage.until(lambda: re.search(r"query \d+, float16", stage.text))
    row = present(pane.bars.row)
    assert f"recovers at × {short(present(row.threshold), UNICODE)}" in stage.text


@pytest.mark.slow
@played()
async def test_the_list_sets_formats_of_a_and_b_apart_and_the_row_shows_them(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press("i", *"a: file", "enter", "i", *"a: format bfloat16", "enter")
    await stage.press("i", *"a: arithmetic eager", "enter")
    await stage.at_rest()
    assert pane.sides.a == HeadSetting(precision="bfloat16", arithmetic="eager")
    assert pane.sides.b == HeadSetting()
    assert formats(pane) == ["bfloat16", "float64"]
    capture = open_capture(sample_path())
    layer, head = capture.layers[pane.heads.cursor[0]], pane.heads.cursor[1]
    rules = [rule_of(each, layer) for each in (pane.sides.a, pane.sides.b)]
    wanted = attention_row(capture, layer, head, rules, 0, pane.matrix.cursor[0])
    assert pane.bars.row == wanted
    assert wanted.columns[0].weights != wanted.columns[1].weights
    await stage.until(lambda: re.search("bfloat16 +file", stage.text))
    assert "--against file,precision=bfloat16,arithmetic=eager" in pane.command()
    await stage.press("v")
    await stage.until(lambda: "file, bfloat16, eager" in stage.text)
    assert "With the file's scale, bfloat16, eager," in " ".join(stage.text.split())
    await stage.press("F", "F", "F", "F")
    await stage.until(lambda: pane.is_current and formats(pane) == ["bfloat16", "float8_e4m3fn"])


@pytest.mark.slow
@played()
async def test_a_format_without_the_arithmetic_of_b_is_refused_with_the_reason(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press("i", *"b: arithmetic eager", "enter", "F", "F", "F")
    await stage.until(lambda: pane.is_current and formats(pane) == ["bfloat16", "bfloat16"])
    await stage.press("F")
    await stage.until(lambda: "must be fused with format float8 e4m3" in stage.text)
    assert pane.sides.b.precision == "bfloat16"


def large(folder: Path) -> Path:
    """A head with a soft-cap whose scores overflow float16."""
    rng = np.random.default_rng(0)
    arrays = {f"layers.0.attn.{name}": (60 * rng.standard_normal((1, 1, 12, 64))).astype(np.float32) for name in "qk"}
    layers = [{"name": "0", "index": 0, "causal": False, "scale": 0.001, "softcap": 5.0}]
    path = folder / "large.safetensors"
    save_file(arrays, path, {"schema": "attn-tui/qk-2", "layers": json.dumps(layers)})
    return path


@pytest.mark.slow
def test_a_row_that_is_nan_is_said_in_words_and_the_soft_cap_can_be_taken_away(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        await stage.until(lambda: "capped at 5" in stage.text)
        await stage.press("i", *"a: no soft", "enter")
        await stage.until(lambda: pane.is_current and pane.sides.a.softcap == 0)
        assert "capped at 5" not in stage.text, "only B is"
        assert "--against none,softcap=0" in pane.command()
        await stage.press("F", "F", "i", *"b: arithmetic eager", "enter")
        await stage.at_rest()
        row = present(pane.bars.row)
        for query in range(12):
            pane.matrix.choose(query, 0)
            await stage.at_rest()
            row = present(pane.bars.row)
            if row.columns[0].is_nan:
                break
        assert row.columns[0].is_nan
        assert "unscaled is NaN" in stage.text
        assert stage.text.count("NaN") > 3

    play(script, first_pane="Capture", given={"file": OpenCapture(large(tmp_path))})


def test_a_command_names_the_scale_of_a_unless_it_is_as_usual() -> None:
    for against, scale, named in (("none", "file", False), ("none", "d_k", True), ("file", "d_k", False)):
        assert ("against" in Sides(against, replace(AS_IN_FILE, scale=scale)).options) is named


def two_files(folder: Path) -> tuple[Path, Path]:
    """A file and one in which head 1 has another scale and head 2 other queries."""
    q, k = some_heads(heads=3, tokens=12, d_k=8), some_heads(heads=3, tokens=12, d_k=8, seed=1)
    other = q.copy()
    other[2] = some_heads(heads=1, tokens=12, d_k=8, seed=2)[0]
    for name, queries in (("old", q), ("new", other)):
        np.savez(folder / f"{name}.npz", q=queries, k=k, scale=0.35, tokens=[f"t{n}" for n in range(12)])
    return folder / "old.npz", folder / "new.npz"


def play_with(file: Path, script: Script) -> None:
    play(script, size=(120, 40), first_pane="Capture", given={"file": OpenCapture(file)})


async def opened(stage: Stage) -> CapturePane:
    pane = await stage.head()
    await stage.at_rest()
    return pane


def test_b_compares_with_a_file_and_an_empty_answer_ends_it(tmp_path: Path) -> None:
    old, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("b", *str(old), "enter")
        await stage.at_rest()
        found = compare(open_capture(old), open_capture(new))
        assert {place: each.change for place, each in pane.heads.compared.items()} == {
            (each.test_layer.position, each.test_head): each.change for each in found.heads
        }
        assert pane.heads.statistic is CHANGE
        assert pane.heads.places[0] == (0, 2)
        assert pane.list.ranking.heads[0].because[0].startswith("q·kᵀ differs: ")
        page = "\n".join(stage.part(pane.page))
        assert "FIRST DIFFERENCE" in page
        assert "layer 0, head 2" in page
        await stage.press("v")
        await stage.at_rest()
        assert "old.npz: q·kᵀ, layer 0, head 2" in stage.lines[1]
        assert [place for place in pane.heads.places if pane.heads.is_of_note(place)] == [(0, 2)]
        await stage.press("n")
        await stage.at_rest()
        assert pane.heads.cursor == (0, 2)
        assert "change from the baseline" in stage.text
        assert old in pane.files_read
        await stage.press("b", *["backspace"] * len(str(old)), "enter")
        await stage.at_rest()
        assert not pane.heads.compared
        assert pane.heads.statistic is not CHANGE
        assert "against" not in stage.lines[1]
        late = ComparedHeads(open_capture(old).described(), found.heads, Plan((), (), ()))
        pane.show_answer(CompareHeads(pane.file, old), late)
        assert not pane.heads.compared

    play_with(new, script)


def test_a_baseline_that_cannot_be_read_is_explained_and_the_file_stays(tmp_path: Path) -> None:
    _, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("b", *"/nowhere.npz", "enter")
        await stage.at_rest()
        assert "/nowhere.npz" in stage.lines[1]
        assert pane.heads.baseline is None
        assert pane.bars.region.area

    play_with(new, script)


def test_y_copies_the_comparison_while_there_is_a_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two_files(tmp_path)
    taken: dict[str, str] = {}
    command = f"attn-tui compare {old} {new}"

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.command().startswith("attn-tui inspect ")
        stage.engine.hold = True
        await stage.press("b", *str(old), "enter")
        assert pane.command() == command
        assert "0 of " in refusal(lambda: pane.numbers("json"))
        stage.engine.let_go()
        await stage.at_rest()
        taken.update({kind: pane.numbers(kind) for kind in FORMATS}, python=pane.code("python"))
        assert old in pane.files_read
        assert pane.file_name == "new-comparison"
        pane.views.bring("replay")
        await stage.at_rest()
        assert pane.command().endswith("--rules all")

    play_with(new, script)
    for kind, text in taken.items():
        assert main([*shlex.split(command)[1:], "--format", kind]) == 1
        assert capsys.readouterr().out == text


@pytest.mark.parametrize(("keys", "place"), [([], (0, 2)), (["right"], (0, 1))])
def test_the_head_that_changed_most_is_shown_unless_another_was_chosen(
    keys: list[str], place: tuple[int, int], tmp_path: Path
) -> None:
    old, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.heads.cursor == (0, 0)  # of a file without evidence, no head is in doubt
        stage.engine.hold = True
        await stage.press("b", *str(old), "enter", *keys)
        stage.engine.let_go()
        await stage.at_rest()
        assert pane.heads.places[0] == (0, 2)
        assert pane.heads.cursor == place

    play_with(new, script)

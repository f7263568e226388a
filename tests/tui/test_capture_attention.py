"""The Capture pane: heads ranked, the attention of the selected one, finding, views, and the verdict on the file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import named_rule
from attn_tui.core.diagnosis.heads.attention import attention_row
from attn_tui.core.diagnosis.heads.reasons import severity
from attn_tui.core.questions.request import Cache
from attn_tui.core.scales import SCALE_RULES
from attn_tui.tui.panes.capture.heads import RATIO
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import HeadStatistics, MeasureHeads, OpenCapture, RoughHeads
from cases import present
from stage import SIZES, Script, Stage, Taken, agree, play, played, some_heads, take

WRONG = Path(__file__).parents[1] / "data/wrong-scale.safetensors"


def play_with(file: Path, script: Script, size: tuple[int, int] = (120, 40)) -> None:
    play(script, size=size, first_pane="Capture", given={"file": OpenCapture(file)})


async def explained(stage: Stage) -> CapturePane:
    """Wait until every head is ranked and explained."""
    pane = await stage.head()
    await stage.at_rest()
    assert len(pane.list.ranking.heads) == len(pane.heads.explained) > 0
    return pane


def value_of(pane: CapturePane, name: str, place: tuple[int, int]) -> float:
    measured = present(pane.heads.measured[place])
    value = present(measured[name].value)
    return value


@played()
async def test_heads_are_ranked_worst_first_with_reasons(stage: Stage) -> None:
    pane = await explained(stage)
    keys = [severity(pane.heads.measured[place]) for place in pane.heads.places]
    assert keys == sorted(keys)
    assert "worst first" in stage.text
    first = next(line for line in stage.part(pane.list) if " 0/2 " in line)
    for word in ("4.30", "one-hot", "|q| is 3.5 × the layer"):
        assert word in first


@played()
async def test_n_and_shift_n_go_through_the_heads_that_are_not_healthy(stage: Stage) -> None:
    pane = await explained(stage)
    noted = [place for place in pane.heads.places if pane.heads.is_of_note(place)]
    assert len(noted) == 39
    await stage.press("n")
    assert pane.heads.cursor == noted[0], "a healthy head comes after all of them"
    for place in noted[1:4]:
        await stage.press("n")
        assert pane.heads.cursor == place
    await stage.press("N", "N", "N", "N")
    assert pane.heads.cursor == noted[-1], "around the end"
    await stage.press("n")
    assert pane.heads.cursor == noted[0]


@played()
async def test_the_list_moves_the_head_and_shows_it(stage: Stage) -> None:
    pane = await explained(stage)
    await stage.press("tab")
    assert stage.app.focused is pane.list
    at = pane.heads.places.index(pane.heads.cursor)
    await stage.press("up")
    assert pane.heads.cursor == pane.heads.places[at - 1]
    await stage.press(*["pageup"] * 12)
    assert pane.heads.cursor == pane.heads.places[0]
    await stage.still()
    assert any("▌0/2" in line for line in stage.part(pane.list))
    await stage.click((7, 4), pane.list)
    assert pane.heads.cursor == pane.heads.places[3]
    await stage.press("escape")
    assert stage.app.focused is pane


@played()
async def test_the_list_is_sorted_by_the_statistic_of_the_map(stage: Stage) -> None:
    pane = await explained(stage)
    await stage.press("M", "O")
    name = pane.heads.statistic.name
    values = [value_of(pane, name, place) for place in pane.heads.places]
    assert values == sorted(values, reverse=True)
    await stage.still()
    assert f"largest {pane.heads.statistic.label} first" in stage.text
    await stage.press("O")
    assert [pane.heads.value(place) for place in pane.heads.places] == values[::-1]
    await stage.press("O")
    assert pane.heads.places == sorted(pane.heads.places)
    await stage.press("O")
    assert pane.heads.places[0] == (0, 2)


@played()
async def test_the_row_is_that_of_the_cursor_in_the_matrix(stage: Stage) -> None:
    pane = await explained(stage)
    await stage.press("n", "tab", "tab")
    assert stage.app.focused is pane.matrix
    await stage.press("up", "up", "right", "right", "right", "left")
    assert pane.matrix.cursor == (67, 2)
    await stage.at_rest()
    capture = open_capture(sample_path())
    layer = capture.layers[0]
    wanted = attention_row(capture, layer, 2, [named_rule("none", layer), file_rule(layer)], 0, 67)
    assert pane.bars.row == wanted
    assert f"query 67 “{present(capture.tokens)[0][67]}”" in stage.text
    assert f"{wanted.columns[0].entropy:.3g}"[:4] in stage.text
    await stage.press("S")
    await stage.at_rest()
    row = present(pane.bars.row)
    assert [column.rule for column in row.columns] == ["none", pane.sides.b.scale] == ["none", "none"]
    await stage.press("A")
    await stage.at_rest()
    row = present(pane.bars.row)
    assert pane.sides.against == next(rule for rule in SCALE_RULES if rule != "none")
    assert [column.rule for column in row.columns] == [pane.sides.against, pane.sides.b.scale]
    await stage.press("u", "u")
    assert (pane.sides.against, pane.sides.b.scale) == ("none", "file")


@played()
async def test_zooming_asks_for_a_part_and_moving_pans_it(stage: Stage) -> None:
    pane = await explained(stage)
    await stage.press("tab", "tab", "plus", "plus")
    await stage.at_rest()
    matrix = present(pane.matrix.matrix)
    assert (matrix.queries[0], matrix.queries[-1]) == (52, 70)
    assert (matrix.keys[0], matrix.keys[-1]) == (0, 18)
    assert "52–69 × 0–17 of 70 × 70" in stage.text
    await stage.press(*["right"] * 20, *["up"] * 20)
    await stage.at_rest()
    assert pane.matrix.matrix is not None
    assert pane.matrix.matrix.keys[-1] == 21
    assert pane.matrix.matrix.queries[0] == 49
    await stage.press("minus", "minus", "minus")
    await stage.at_rest()
    assert (pane.matrix.queries, pane.matrix.keys) == ((0, 70), (0, 70))


@played()
async def test_cells_of_the_matrix_and_keys_of_the_row_can_be_clicked(stage: Stage) -> None:
    pane = await explained(stage)
    matrix = present(pane.matrix.matrix)
    await stage.click((pane.matrix.view.labels + 4, 3), pane.matrix)
    await stage.at_rest()
    chosen = pane.matrix.cursor
    assert chosen == (matrix.queries[4], matrix.keys[4]), "two rows a line"
    await stage.click((4, 2), pane.bars)
    await stage.at_rest()
    assert pane.bars.row is not None
    assert pane.matrix.cursor[0] == chosen[0]
    assert pane.matrix.cursor[1] == pane.bars.key != chosen[1]


@played()
async def test_a_head_a_query_or_a_token_is_found(stage: Stage) -> None:
    pane = await explained(stage)
    await stage.press("/", "3", "/", "7", "enter")
    assert pane.heads.cursor == (3, 7)
    assert stage.app.focused is pane
    await stage.press("/", "1", "2", "enter")
    assert pane.matrix.cursor[0] == 12
    await stage.press("/", *"query", "enter")
    assert "query" in present(pane.matrix.tokens[0])[pane.matrix.cursor[0]]
    assert pane.heads.cursor == (3, 7), "letters are typed"
    await stage.press("/", *"9/9", "enter")
    assert "no layer 9; the file has layers 0 to 5" in stage.lines[1]
    await stage.press("escape")
    assert "no layer 9" not in stage.lines[1]
    assert "no evidence" in stage.lines[1]
    assert stage.app.focused is pane


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_v_turns_from_attention_to_statistics_and_to_the_rules_replayed(
    size: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.opened(CapturePane)
        await explained(stage)
        assert pane.matrix.region.area
        await stage.press("v")
        assert pane.results.region.area
        assert not pane.matrix.region.area
        while pane.views.shown == "statistics":
            await stage.press("v")
        await stage.at_rest()
        text = "\n".join(stage.part(pane.replay))
        assert re.search(r"^ file(,| = 1/√d_k)", text, re.M)
        assert "KL" in text
        taken.append(take(pane))
        assert taken[0][0].endswith("--head 0 --rules all")
        await stage.press("v")
        assert pane.matrix.region.area

    play(script, size=size)
    agree(taken, capsys)


def test_a_wrong_scale_is_the_verdict_the_first_head_and_a_map() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head(None)
        await stage.at_rest()
        page = "\n".join(stage.part(pane.page))
        assert "WRONG SCALE" in page
        assert "1/√32" in page
        digits = [line for line in stage.part(pane.page) if {*"▄▀"} & {*line}]
        assert len(digits) == 3  # what it is and what it should be
        await stage.press("v")
        await stage.still()
        assert "should be × 0.1768" in stage.lines[1]
        assert pane.heads.is_of_note(pane.heads.places[0])
        assert "should be × 0.1768" in pane.list.ranking.heads[0].because[0]
        assert pane.heads.choices[-1] is RATIO
        assert pane.heads.cursor == pane.heads.places[0]  # where the pane begins
        assert "healthy" not in stage.lines[1]
        assert "wrong" in stage.lines[4]  # instead of the status of its numbers
        verdict = pane.heads.verdicts[pane.heads.places[0]]
        columns = present(pane.bars.row).columns  # as it is, and as it should be
        assert [each.multiplier for each in columns] == [verdict.multiplier, verdict.expected.multiplier]
        assert "is × 0.03" in stage.text
        await stage.press("A")  # another rule beside the file's
        await stage.at_rest()
        assert "file: not as computed" in stage.text
        reason = pane.list.ranking.heads[0].because[0]
        assert reason.startswith(f"{pane.heads.verdicts[pane.heads.places[0]].cause}: ")
        assert reason in stage.words(pane.map)  # in full, which the list has no room for
        await stage.press("M")
        while pane.heads.statistic is not RATIO:
            await stage.press("M")
        assert pane.heads.value(pane.heads.places[0]) == verdict.ratio != 1
        await stage.still()
        assert "multiplier ÷ expected" in stage.text

    play_with(WRONG, script)


def test_comma_and_full_stop_step_through_the_texts_of_a_layer(tmp_path: Path) -> None:
    q, k = np.random.default_rng(0).normal(size=(2, 3, 2, 6, 4))
    layers: dict[str, Any] = {f"layers.{at}.attn.{side}": x[at:] for at in (0, 1) for side, x in (("q", q), ("k", k))}
    np.savez(tmp_path / "texts.npz", scale=0.5, axes="batch,head,token,d_k", **layers)

    async def script(stage: Stage) -> None:
        pane = await explained(stage)
        capture = open_capture(tmp_path / "texts.npz")
        layer = capture.layers[0]
        rules = [named_rule("none", layer), file_rule(layer)]
        for key, text in ((".", 1), (".", 2), (".", 0), (",", 2)):
            await stage.press("full_stop" if key == "." else "comma")
            await stage.at_rest()
            assert pane.bars.row == attention_row(capture, layer, 0, rules, text, 5)
            assert f"text {text}" in stage.text
        await stage.press("down")
        await stage.at_rest()
        assert (pane.heads.cursor[0], pane.matrix.text, pane.bars.row is None) == (1, 1, False)

    play_with(tmp_path / "texts.npz", script)


def large(folder: Path) -> OpenCapture:
    """A file of two layers whose heads are large."""
    arrays: dict[str, np.ndarray] = {}
    for layer in range(2):
        q = some_heads(heads=2, tokens=300, d_k=8, seed=layer)
        arrays |= {f"layers.{layer}.attn.q": q, f"layers.{layer}.attn.k": q[:, ::-1]}
    np.savez(folder / "large.npz", allow_pickle=False, **arrays)
    return OpenCapture(folder / "large.npz")


def test_large_heads_come_rough_first_then_exact(tmp_path: Path) -> None:
    file, cache = large(tmp_path), Cache()
    rough = [answer for answer in RoughHeads(file).work(cache) if isinstance(answer, HeadStatistics)]
    assert all(answer.rough for answer in rough)
    first = {place: found for answer in rough for place, found in answer.heads.items()}
    exact = [answer for answer in MeasureHeads(file).work(cache) if isinstance(answer, HeadStatistics)]
    then = {place: found for answer in exact for place, found in answer.heads.items()}
    assert first.keys() == then.keys() == {(layer, head) for layer in range(2) for head in range(2)}
    for place in first:
        a, b = first[place], then[place]
        assert a is not None
        assert b is not None
        assert a["entropy"].value != b["entropy"].value
        assert a["entropy"].value == pytest.approx(b["entropy"].value, rel=0.1)


def test_rough_heads_are_marked_until_they_are_measured(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        engine = stage.engine
        pane = await stage.opened(CapturePane)
        await stage.until(lambda: engine.held_for(OpenCapture), "the file")
        engine.hand_on(engine.held_for(OpenCapture))
        await stage.until(lambda: len(engine.asked) > 3 and engine.at_rest, "all answers")
        engine.hand_on(engine.held_for(RoughHeads))
        await stage.until(lambda: len(pane.list.ranking.heads) == 4)
        await stage.still()
        assert all(head.rough for head in pane.list.ranking.heads)
        assert "≈" in "".join(stage.part(pane.list))
        engine.let_go()
        await stage.until(lambda: not pane.heads.rough)
        await stage.still()
        assert "≈" not in "".join(stage.part(pane.list))

    path = large(tmp_path).path
    play(script, first_pane="Capture", given={"file": OpenCapture(path)}, hold=True)

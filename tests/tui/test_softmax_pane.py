"""The Softmax pane as people use it: scores are stepped and typed, and every number follows."""

import math

import pytest
from attn_tui.core.attention.handful import MOST, START
from attn_tui.core.errors import InputError
from attn_tui.core.parameters import Parameters
from attn_tui.tui.cli import main
from attn_tui.tui.panes.softmax import SoftmaxPane
from attn_tui.tui.views.glyphs import ASCII
from attn_tui.tui.widgets.export_screen import ExportScreen
from attn_tui.tui.widgets.help_screen import HelpScreen
from test_app import Stage, play
from test_take_away import Taken, agree, take


async def opened(stage: Stage) -> SoftmaxPane:
    pane = await stage.opened(SoftmaxPane)
    await stage.still()
    return pane


def top(pane: SoftmaxPane) -> str:
    """The line that says what is done, or what is wrong."""
    return "".join(text for text, _ in pane.text._lines[0]).strip()


def test_it_starts_from_the_notes_scores_at_the_lab_s_scale() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.handful.scores == START
        assert [side.multiplier for side in pane.worked.sides] == [1, 0.125]
        assert "scaled × 0.125 (1/√d_k, d_k 64)" in stage.text
        assert "almost no gradient passes" in " ".join(stage.text.split())
        assert "5 scores · d_k 64 · 1/√d_k" in stage.lines[0]

    play(script)


def test_keys_step_the_score_with_the_cursor() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        stage.send("up", "k", "k", "j", "right", "l", "left", "d", "d", "u", "down")
        await stage.answered()
        assert pane.handful.scores == (-22, -11, 0, 10, 24)
        stage.send(*["right"] * 9, "d", *["left"] * 9, "up")
        await stage.answered()
        assert pane.handful.scores == (-21, -11, 0, 10, 23.9)
        assert [round(x, 9) for x in pane.worked.sides[1].logits] == [-2.625, -1.375, 0, 1.25, 2.9875]

    play(script)


def test_a_score_is_typed_in_place_and_every_key_counts() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("right", "1", "2")
        assert pane.handful.scores[1] == 12
        assert "Enter keeps" in top(pane)
        await stage.press(".", "5", "left", "left", "3", "enter")
        assert pane.handful.scores[1] == 123.5
        assert "logit x" in top(pane)
        await stage.press("-", "1", "e", "-", "2")
        assert pane.handful.scores[1] == -0.01
        await stage.press("up")
        assert pane.handful.scores[1] == 0
        await stage.press("enter", "backspace", "7", "escape")
        assert pane.handful.scores[1] == 0
        await stage.press("right", "right", "backspace")
        assert pane.handful.scores == (-24, 0, 0, 1, 24)
        await stage.press("escape")
        assert pane.handful.scores == (-24, 0, 0, 10, 24)

    play(script)


def test_nonsense_is_said_in_a_line_and_nothing_is_lost() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        before = pane.worked
        await stage.press("-", "-", "enter")
        assert "score: '--' is not accepted; it takes a number from -1000 to 1000." in top(pane)
        assert pane.handful.scores == START
        assert pane.worked is before
        for ask in (pane.command, lambda: pane.numbers("json")):
            with pytest.raises(InputError, match="not accepted"):
                ask()
        await stage.press("backspace", "9", "9", "9", "9")
        assert "'-9999' is not accepted" in top(pane)
        assert pane.handful.scores[0] == -999
        await stage.press("escape")
        assert pane.handful.scores == START
        assert "logit x" in top(pane)
        await stage.press("5", "e", "right", "up")
        assert pane.handful.scores[0] == 6
        assert "logit x" in top(pane)

    play(script)


def test_scores_are_added_and_removed_between_two_and_eight() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("right", "a", "7")
        assert pane.handful.scores == (-24, -10, 7, 0, 10, 24)
        stage.send(*["a"] * 5)
        await stage.answered()
        assert len(pane.handful.scores) == MOST
        assert "8 scores are the most" in top(pane)
        stage.send(*["right"] * 9, *["x"] * 9)
        await stage.answered()
        assert len(pane.handful.scores) == 2
        assert "fewest" in top(pane)
        assert pane.editing.at == 1
        await stage.press("left")
        assert "logit x" in top(pane)

    play(script)


def test_temperature_and_shift_are_stepped_and_all_of_it_is_reset() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        weights = [pytest.approx(side.weights.tolist(), rel=1e-12) for side in pane.worked.sides]
        stage.send(*["}"] * 8)
        await stage.still()
        assert pane.handful.shift == 800
        assert [side.weights.tolist() for side in pane.worked.sides] == weights
        assert stage.text.count("5 of 5 overflow: no weights") == 2
        assert "unscaled × 1 + 800" in stage.text
        assert "800 more in every logit moves no weight" in " ".join(stage.text.split())
        await stage.press("{", "[", "]", "]")
        assert pane.handful.shift == 710
        stage.send("t", "t", "t")
        await stage.answered()
        assert pane.worked.sides[0].weights.tolist() == weights[1]
        stage.send(*["T"] * 4)
        await stage.answered()
        assert pane.handful.temperature == 0.5
        await stage.press("up", "a", "R")
        assert (pane.handful.scores, pane.handful.temperature, pane.handful.shift) == (START, 1, 0)

    play(script)


def test_scale_width_and_format_are_the_lab_s() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("w", "f", "f", "s")
        assert stage.asked == pane.parameters
        assert (pane.parameters.d_k, pane.parameters.precision, pane.parameters.scale) == (80, "bfloat16", "d_k")
        assert pane.worked.sides[1].multiplier == 1 / 80
        await stage.press(">", "<")
        stage.app.action_pane("Lab")
        await stage.answered()
        assert stage.lab.parameters == pane.parameters
        await stage.press("up")
        stage.app.action_pane("Softmax")
        await stage.answered()
        assert pane.worked.sides[1].multiplier == 1 / 128

    play(script)


def test_a_rule_that_normalises_is_told_and_another_stands_in() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.worked.sides[1].multiplier == 0.125
        text = " ".join(stage.text.split())
        assert "scale 10·cos(q, k) normalises queries and keys" in text
        assert "1/√d_k stands in." in text
        assert "--scale" not in pane.command()

    play(script, Parameters(scale="cosine_10"))


def test_what_the_lab_does_to_logits_besides_is_said_to_be_left_out() -> None:
    async def script(stage: Stage) -> None:
        await opened(stage)
        assert "The Lab's soft-cap and sink are left out here." in " ".join(stage.text.split())

    play(script, Parameters(softcap=50))


@pytest.mark.parametrize(
    ("keys", "parameters"),
    [
        ([], Parameters()),
        (["-", "1", ".", "2", "5", "enter", "t", "}", "x"], Parameters(d_k=96, precision="float16", seed=7)),
        (["T"], Parameters(scale="custom", multiplier=0.3, n_keys=7)),
    ],
)
def test_the_command_prints_the_numbers_of_the_pane(
    keys: list[str], parameters: Parameters, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press(*keys)
        taken.append(take(pane))

    play(script, parameters)
    agree(taken, capsys)


def test_what_does_not_fit_is_reached_by_scrolling_and_the_cursor_is_followed() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("a", "a", "a")
        assert "more lines: PgDn" in stage.text
        await stage.press(*["pagedown"] * 4)
        assert "naive: exp(x)" in stage.text
        assert "more lines" not in stage.text
        await stage.press("left")
        assert "▸" in stage.text
        assert pane.text.top == 0

    play(script, size=(80, 24))


def test_it_does_without_other_characters_and_help_explains_what_was_touched() -> None:
    async def script(stage: Stage) -> None:
        await opened(stage)
        await stage.press("t", "]")
        assert stage.text.isascii()
        await stage.press("?")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.still()
        assert "shift (c)" in stage.text
        assert stage.text.isascii()

    play(script, glyphs=ASCII)


def test_a_click_chooses_a_score() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        for y, at in ((8, 4), (4, 0), (6, 2), (3, 2), (20, 2)):
            await stage.pilot.click(pane.text, (10, y - 1))
            assert pane.editing.at == at

    play(script)


def test_e_exports_unless_a_number_is_being_typed() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("2", "e", "1", "enter")
        assert pane.handful.scores[0] == 20
        await stage.press("e")
        assert isinstance(stage.app.screen, ExportScreen)

    play(script)


def test_the_command_line_takes_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["softmax", "--scores", "-1,0", "--format", "csv", "--scale", "0.5"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    weights = [float(row[-1]) for row in rows if row[-4] == "weights" and row[-6] == "custom"]
    assert weights == pytest.approx([1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))])
    assert main(["softmax", "--shift", "800"]) == 0
    assert "5 of 5 overflow" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scores", "1,x"], "--scores: 'x' is not accepted; it takes a number from -1000 to 1000"),
        (["--scores", "1"], "--scores: 1 of them are not accepted; it takes 2 to 8"),
        (["--temperature", "0"], "--temperature: '0' is not accepted; it takes a number from 0.01 to 100"),
        (["--scale", "cosine_10"], "scale 10·cos(q, k) normalises queries and keys before it multiplies"),
        (["--softcap", "1"], "there is no option --softcap"),
    ],
)
def test_bad_words_get_one_clear_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["softmax", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""

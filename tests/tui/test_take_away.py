"""What people take away from a pane: its numbers are those its command prints, its picture is what it shows."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.claims import CLAIMS, check
from attn_tui.core.parameters import Parameters
from attn_tui.tui.cli import main
from attn_tui.tui.panes import sweep as sweep_pane
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.picture import _strips, picture
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.widgets.help_screen import HelpScreen
from rich.color import ColorSystem
from test_app import SMALL, Stage, capture_file, play, some_heads
from textual.strip import Strip

KINDS = ("json", "csv", "markdown")

Captured = pytest.CaptureFixture[str]


Taken = tuple[str, dict[str, str]]  # a command, and numbers in every format


def take(pane: Pane) -> Taken:
    return pane.command(), {kind: pane.numbers(kind) for kind in KINDS}


def agree(taken: list[Taken], captured: Captured) -> None:
    """Each command, once the app has left the terminal to it, prints the numbers that were taken with it."""
    assert taken
    for command, numbers in taken:
        program, *words = shlex.split(command)
        assert program == "attn-tui"
        for kind, text in numbers.items():
            assert main([*words, "--format", kind]) == 0
            out, err = captured.readouterr()
            assert out == text
            assert not [line for line in err.splitlines() if not line.startswith("attn-tui: note: ")]


def refusal(ask: Callable[[], str]) -> str:
    with pytest.raises(InputError) as caught:
        ask()
    assert str(caught.value)[-1] == "."
    return str(caught.value)


# The Lab


@pytest.mark.parametrize(
    "parameters",
    [
        SMALL,
        replace(SMALL, components="student_t", degrees_of_freedom=7, mean_q=-0.5, std_k=2.0, mask="causal", seed=3),
        replace(SMALL, scale="custom", multiplier=0.05, correlation=-0.25),
        replace(SMALL, multiplier=0.05),
    ],
    ids=["small", "causal", "custom", "left over"],
)
def test_the_lab_s_command_prints_the_lab_s_numbers(parameters: Parameters, capsys: Captured) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        await stage.settled()
        taken.append(take(stage.lab))
        await stage.press("right", "s")
        await stage.settled()
        taken.append(take(stage.lab))
        assert stage.lab.file_name == "lab-d65"

    play(script, parameters)
    agree(taken, capsys)


def test_the_lab_exports_no_numbers_that_are_not_asked_for() -> None:
    async def script(stage: Stage) -> None:
        assert "d_k 64" in refusal(lambda: stage.lab.numbers("json"))
        stage.app.let_go()
        await stage.settled()
        stage.app.hold = True
        await stage.press("left")
        assert "d_k 63" in refusal(lambda: stage.lab.numbers("csv"))
        assert "--d-k 63" in stage.lab.command()
        stage.app.let_go()
        await stage.settled()
        assert '"d_k": 63' in stage.lab.numbers("json")
        await stage.press("5", "0", "0", "0", "0")
        reason = refusal(lambda: stage.lab.numbers("json"))
        assert "'50000' is not accepted" in reason
        assert refusal(stage.lab.command) in reason

    play(script, hold=True)


def test_the_lab_waits_for_its_theory() -> None:
    async def script(stage: Stage) -> None:
        through, kept = stage.lab.deliver, []
        stage.lab.deliver = lambda message: kept.append(message) if message.kind == "theory" else through(message)
        await stage.until(lambda: kept)
        assert "theory" in refusal(lambda: stage.lab.numbers("json"))
        through(kept[0])
        await stage.settled()
        assert '"theory"' in stage.lab.numbers("json")

    play(script, replace(SMALL, n_keys=13))


# The Sweep pane


@pytest.mark.parametrize(
    "parameters",
    [SMALL, replace(SMALL, scale="log_d_k", components="laplace", mask="causal", seed=3)],
    ids=["small", "a rule without a value at d_k 1"],
)
def test_the_command_of_a_sweep_prints_its_numbers(
    parameters: Parameters, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_pane, "GRIDS", (replace(sweep_pane.GRIDS[0], text="1:64:log6,16"), sweep_pane.GRIDS[1]))
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        stage.app.action_pane("Sweep")
        await stage.answered()
        pane = stage.app.panes["Sweep"]
        assert isinstance(pane, sweep_pane.SweepPane)
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the sweep")
        taken.append(take(pane))
        await stage.press("]")  # twice the keys
        await stage.until(lambda: "--n-keys 32" in pane.command() and succeeds(lambda: pane.numbers("json")))
        taken.append(take(pane))
        pane.swept = replace(pane.swept, points=dict([*pane.swept.points.items()][:2]))
        assert refusal(lambda: pane.numbers("csv")).startswith("2 of ")

    play(script, parameters)
    agree(taken, capsys)


# The Capture pane


@pytest.mark.parametrize("keys", [[], ["right", "down", "s"], ["S"]], ids=lambda keys: " ".join(keys) or "at once")
def test_the_command_of_a_head_prints_its_numbers(keys: list[str], capsys: Captured) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        await stage.press(*keys)
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")))
        taken.append(take(pane))

    play(script)
    agree(taken, capsys)


def succeeds(ask: Callable[[], str]) -> bool:
    try:
        return bool(ask())
    except InputError:
        return False


def test_a_head_that_is_not_measured_yet_is_not_exported(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        assert succeeds(lambda: pane.numbers("json"))
        through = pane.deliver
        held: list[Any] = []
        pane.deliver = held.append  # type: ignore[method-assign]
        await stage.press("right")
        assert "still being measured" in refusal(lambda: pane.numbers("json"))
        assert "--head 1" in pane.command()
        await stage.until(lambda: held)
        through(held[0])
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")))
        assert '"head": 1' in pane.numbers("json")

    play(script, capture=capture_file(tmp_path, some_heads()))


@pytest.mark.parametrize("name", ["it's a $HOME.npz", "-x.npz", "\udcff\n.npz"])
def test_a_file_of_any_name_stands_in_the_command_as_a_shell_needs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    capture_file(tmp_path, some_heads(), name=name)
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        taken.append(take(await stage.head()))

    play(script, capture=Path(name))
    ((command, numbers),) = taken
    assert command.isprintable()
    known = f'attn-tui() {{ {shlex.quote(sys.executable)} -m attn_tui.tui "$@"; }}'
    line = f"{known}; {command} --format json"
    result = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=60)
    assert result.stdout.decode() == numbers["json"]


def test_axes_that_were_given_stand_in_the_command(tmp_path: Path, capsys: Captured) -> None:
    file = capture_file(tmp_path, some_heads()[np.newaxis].swapaxes(1, 2))

    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        taken.append(take(await stage.head()))

    play(script, capture=file, axes="batch,token,head,d_k")
    agree(taken, capsys)


def test_of_two_layers_of_one_number_the_command_names_the_one(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "two.npz"
    one, other = some_heads(seed=1), some_heads(seed=2)
    arrays = {"encoder.layers.0.attn": one, "decoder.layers.0.attn": other}
    np.savez(file, **{f"{name}.{word}": values for name, values in arrays.items() for word in "qk"})

    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        seen = {pane.command()}
        taken.append(take(pane))
        await stage.press("down")
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")))
        taken.append(take(pane))
        assert len({*seen, pane.command()}) == 2

    play(script, capture=file)
    agree(taken, capsys)


def test_before_a_file_is_open_there_is_neither_command_nor_number() -> None:
    pane = CapturePane(Parameters(), UNICODE)
    assert "No file" in refusal(pane.command)
    assert "still being measured" in refusal(lambda: pane.numbers("json"))
    assert pane.file_name == "capture"
    assert pane.files_read == ()


# The Claims pane


def test_the_command_of_the_claims_prints_their_outcomes(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    quick = [claim for claim in CLAIMS if claim.id in ("softmax-unscaled-example", "like-cosine", "bleu-table")]
    outcomes = [check(claim) for claim in quick]
    for module in ("core.lab.claims", "tui.plain.claims"):
        monkeypatch.setattr(f"attn_tui.{module}.CLAIMS", quick)
        monkeypatch.setattr(f"attn_tui.{module}.check_all", lambda: reversed(outcomes))
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        stage.app.action_pane("Claims")
        pane = stage.app.pane
        assert "0 of all claims" in refusal(lambda: pane.numbers("json"))
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")))
        taken.append(take(pane))
        pane.claims.outcomes.popitem()
        assert "2 of 3 claims" in refusal(lambda: pane.numbers("json"))
        assert pane.file_name == "claims"

    play(script)
    agree(taken, capsys)


# Pictures


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_a_picture_is_what_textual_makes_of_the_screen_without_a_font_from_elsewhere(
    size: tuple[int, int], glyphs: Glyphs
) -> None:
    async def script(stage: Stage) -> None:
        for pane in ("Lab", "Capture"):
            stage.app.action_pane(pane)
            await (stage.settled() if pane == "Lab" else stage.head())
            svg = picture(stage.app.screen)
            whole = stage.app.export_screenshot(title="attn-tui", simplify=True)
            whole = re.sub(r"@font-face \{.*?\}", "", whole, flags=re.DOTALL).replace("Fira Code", "monospace")
            assert svg == whole
            links = set(re.findall(r"https?://[^\"' )]+", svg))
            assert all(link.startswith("http://www.w3.org/") or "textualize" in link for link in links), links
            assert "url(http" not in svg
            assert svg.isascii() or not glyphs.ascii

    play(script, size=size, glyphs=glyphs)


def test_a_picture_shows_the_pane_without_what_stands_over_it() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        screen = stage.app.screen
        before = picture(screen)
        await stage.press("?")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.still()
        assert picture(screen) == before
        assert picture(stage.app.screen) != before

    play(script)


def test_a_picture_leaves_no_colours_behind_that_the_terminal_does_not_have() -> None:
    """Where Textual makes the frames itself it sends the codes that a style has kept."""

    async def script(stage: Stage) -> None:
        await stage.settled()
        styles = {id(style): style for strip in _strips(stage.app.screen) for _, style, _ in strip if style}
        for style in styles.values():
            style._ansi = None
        picture(stage.app.screen)
        sent = "".join(Strip.render_style(style, "x", ColorSystem.STANDARD) for style in styles.values())
        assert "\x1b[" in sent
        assert "8;2;" not in sent

    play(script)


def test_what_has_no_numbers_and_no_command_says_so() -> None:
    class Bare(Pane):
        NAME = "Bare"

    pane = Bare(Parameters(), UNICODE)
    assert "Bare" in refusal(pane.command)
    assert "Bare" in refusal(lambda: pane.numbers("csv"))
    assert pane.file_name == "bare"

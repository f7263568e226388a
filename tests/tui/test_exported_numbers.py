"""A pane exports the numbers that its command prints, and only those of the current parameters."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.captures.capture import Hints
from attn_tui.core.learning.claims import catalogue
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import OpenCapture
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.panes.sweep import parts as sweep
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.sweep.requests import GridRange
from stage import SMALL, Stage, Taken, agree, capture_file, play, played, refusal, some_heads, succeeds, take

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def small_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave most places of the map out, so that measuring it is quick."""
    for place in ("map_view", "parts"):
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{place}.N_KEYS", (4, 64))
        monkeypatch.setattr(f"attn_tui.tui.panes.sweep.{place}.D_KS", (1, 16, 64))


def take_head(file: Path | None, axes: str | None = None, *keys: str) -> list[Taken]:
    """Return what the Capture pane exports of a file or the sample, at first and after each key."""
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        taken.append(take(pane))
        for key in keys:
            await stage.press(key)
            await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the head")
            taken.append(take(pane))

    play(script, given={"file": OpenCapture(file, Hints(axes))})
    return taken


def at(field: str) -> list[str]:
    """Return the keys that move the cursor of Heads to a field."""
    return ["down"] * [each.name for each in SHAPE_FIELDS].index(field)


STUDENT = replace(SMALL, components="student_t", degrees_of_freedom=7, mean_q=-0.5, std_k=2.0, mask="causal", seed=3)
CUSTOM = replace(SMALL, scale="custom", multiplier=0.3)
CAPPED = replace(SMALL, scale="two_sqrt_d_k", softcap=3.0)


@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize(
    ("name", "keys", "parameters"),
    [
        ("Lab", ["right", "s"], STUDENT),
        ("Lab", ["right", "s"], replace(SMALL, multiplier=0.05)),
        ("Rules", ["right", "o", "o", "I", "f"], replace(CUSTOM, layer=2)),
        pytest.param("Rules", ["m"], CAPPED, marks=pytest.mark.slow),
        ("Softmax", ["-", *"1.25", "enter", "t", "}", "["], Parameters(d_k=96, precision="float16", seed=7)),
        pytest.param("Softmax", ["T"], replace(CUSTOM, n_keys=7), marks=pytest.mark.slow),
        ("Heads", [*at("bias"), "right"], SMALL),
        pytest.param("Heads", ["/", *"gpt2", "enter", *at("heads"), *["H"] * 6], SMALL, marks=pytest.mark.slow),
        ("Heads", ["/", *"llama-3-8b", "enter", *at("kv_heads"), "backspace"], SMALL),
    ],
)
def test_the_command_of_a_pane_prints_its_numbers(
    name: str, keys: list[str], parameters: Parameters, capsys: Captured
) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        stage.app.action_pane(name)
        await stage.at_rest()
        await stage.press(*keys)
        taken.append(take(await stage.known(stage.app.pane)))

    play(script, parameters)
    agree(taken, capsys)


# The Lab


@played(hold=True)
async def test_the_lab_exports_no_numbers_of_other_parameters(stage: Stage) -> None:
    assert "d_k 64" in refusal(lambda: stage.lab.numbers("json"))
    stage.engine.let_go()
    await stage.settled()
    stage.engine.hold = True
    await stage.press("left")
    assert "d_k 63" in refusal(lambda: stage.lab.numbers("csv"))
    assert "--d-k 63" in stage.lab.command()
    stage.engine.let_go()
    await stage.settled()
    assert '"d_k": 63' in stage.lab.numbers("json")
    await stage.press("5", "0", "0", "0", "0")
    reason = refusal(lambda: stage.lab.numbers("json"))
    assert "50000" in reason
    assert refusal(stage.lab.command) in reason


# The Sweep pane


def test_the_command_of_a_sweep_prints_its_numbers(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a rule without a value at d_k 1."""
    monkeypatch.setattr(sweep, "GRIDS", (replace(sweep.GRIDS[0], text="1:64:log6,16"), *sweep.GRIDS[1:]))
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the sweep")
        taken.append(take(pane))
        await stage.press("]")
        assert "--n-keys 32" in pane.command()
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the sweep with more keys")
        taken.append(take(pane))

    play(script, replace(SMALL, scale="log_d_k", components="laplace", mask="causal", seed=3))
    agree(taken, capsys)


@pytest.mark.parametrize(
    ("rules", "over"),
    [(("d_k", "log(n)/sqrt(d)"), "d_k"), (("rms_none", "custom"), "n_keys")],
    ids=["rules over d_k", "rules over keys"],
)
def test_the_command_of_several_rules_or_of_keys_prints_their_numbers(
    rules: tuple[str, ...], over: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = GridRange("2:64:log6", over)
    monkeypatch.setattr(sweep, "GRIDS", (grid,))
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        pane.curves.show_rules(rules)
        pane.follow()
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the sweep")
        taken.append(take(pane))

    play(script, replace(SMALL, multiplier=0.05))
    agree(taken, capsys)
    found = json.loads(taken[0][1]["json"])
    assert len(found["points"]) == (1 + len(rules)) * len(grid.values)
    assert [point.get("scale", "sqrt_d_k") for point in found["points"][:: len(grid.values)]] == ["sqrt_d_k", *rules]


@pytest.mark.slow
@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("scale", ["sqrt_d_k", "log_d_k"])
def test_the_command_of_the_map_prints_its_numbers(scale: str, capsys: Captured) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.opened(SweepPane)
        pane.view = "map"
        pane.follow()
        assert "0 of" in refusal(lambda: pane.numbers("json"))
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the map")
        taken.append(take(pane))

    play(script, replace(SMALL, scale=scale, batch=8))
    agree(taken, capsys)
    d_ks = [16, 64] if scale == "log_d_k" else [1, 16, 64]
    assert json.loads(taken[0][1]["json"])["d_k"] == d_ks


@played(hold=True)
async def test_an_incomplete_sweep_is_not_exported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "GRIDS", (replace(sweep.GRIDS[0], text="16,32,64"),))
    pane = await stage.opened(SweepPane)
    assert "0 of" in refusal(lambda: pane.numbers("json"))
    stage.engine.let_go()
    await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the sweep")
    pane.curves.swept.points.popitem()
    assert "2 of 3" in refusal(lambda: pane.numbers("csv"))


# The Capture pane


def test_the_command_of_a_head_prints_its_numbers(capsys: Captured) -> None:
    agree(take_head(None, None, "right", "down", "S"), capsys)


def test_a_head_that_is_not_measured_yet_is_not_exported(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        assert succeeds(lambda: pane.numbers("json"))
        stage.engine.hold = True
        await stage.press("right")
        refusal(lambda: pane.numbers("json"))
        assert "--head 1" in pane.command()
        stage.engine.let_go()
        await stage.until(lambda: succeeds(lambda: pane.numbers("json")))
        assert '"head": 1' in pane.numbers("json")

    play(script, given={"file": OpenCapture(capture_file(tmp_path, some_heads()))})


@pytest.mark.parametrize("name", ["-it's a $HOME.npz", pytest.param("\udcff\n.npz", marks=pytest.mark.slow)])
def test_a_shell_can_read_any_file_name_in_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    capture_file(tmp_path, some_heads(), name=name)
    ((command, exported),) = take_head(Path(name))
    assert command.isprintable()
    program = f'attn-tui() {{ {shlex.quote(sys.executable)} -m attn_tui "$@"; }}'
    line = f"{program}; {command} --format json"
    result = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=300)
    assert result.stdout.decode() == exported["json"]


def test_the_command_repeats_the_given_axes(tmp_path: Path, capsys: Captured) -> None:
    file = capture_file(tmp_path, some_heads()[np.newaxis].swapaxes(1, 2))
    agree(take_head(file, "batch,token,head,d_k"), capsys)


def test_the_command_distinguishes_two_layers_with_the_same_number(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "two.npz"
    layers = {"encoder.layers.0.attn": some_heads(seed=1), "decoder.layers.0.attn": some_heads(seed=2)}
    arrays: dict[str, Any] = {f"{name}.{word}": values for name, values in layers.items() for word in "qk"}
    np.savez(file, **arrays)
    taken = take_head(file, None, "down")
    assert len({command for command, _ in taken}) == 2
    agree(taken, capsys)


@played(hold=True)
async def test_without_an_open_file_there_are_no_command_and_no_numbers(stage: Stage) -> None:
    pane = await stage.opened(CapturePane)
    assert "No file" in refusal(pane.command)
    refusal(lambda: pane.numbers("json"))
    assert pane.file_name == "capture"
    assert pane.files_read == ()


# Claims


def test_the_command_of_a_claim_prints_its_outcome(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    ids = ("softmax-unscaled-example", "bleu-table")  # quick ones
    monkeypatch.setattr(catalogue, "CLAIMS", [claim for claim in catalogue.CLAIMS if claim.id in ids])
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await stage.opened(LearnPane)
        pane.show_item(ids[0])
        assert "still being measured" in refusal(lambda: pane.numbers("json"))
        stage.engine.let_go()
        for item in ids:
            pane.show_item(item)
            await stage.until(lambda: succeeds(lambda: pane.numbers("json")), "the claim")
            taken.append((pane.command(), {kind: pane.numbers(kind) for kind in ("json", "markdown")}))
            assert "attn-tui claims" in refusal(lambda: pane.numbers("csv"))

    play(script, hold=True, claims=True)
    agree(taken, capsys)


# Other panes


@played()
async def test_a_pane_without_numbers_and_command_reports_it(stage: Stage) -> None:
    class Bare(Pane):
        NAME = "Bare"

    pane = Bare(stage.app)
    assert "command" in refusal(pane.command)
    assert "numbers" in refusal(lambda: pane.numbers("csv"))
    assert pane.file_name == "bare"

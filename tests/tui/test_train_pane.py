"""The Train pane: a race on screen."""

import json
import shlex
from dataclasses import replace

from attn_tui.core.training.race import run
from attn_tui.core.training.settings import Race
from attn_tui.core.training.snapshot import QUANTITIES, snapshot
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.help import parser_of
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.panes.train.widget import START, curve_lines, share_lines
from attn_tui.tui.views.glyphs import UNICODE
from cases import present
from stage import Stage, played

SHORT = Race(d_k=8, rules=("none", "sqrt_d_k"), rate=2.0, steps=12, seeds=2)


async def training(stage: Stage, race: Race = SHORT) -> TrainPane:
    """Open the pane with a short race, and wait for its end."""
    stage.app.action_pane("Train")
    pane = stage.pane(TrainPane)
    pane.settings.race = race
    pane.follow()
    await stage.until(lambda: pane.is_current, "the end of the race")
    await stage.still()
    return pane


@played()
async def test_a_race_shows_its_curves_and_other_quantities_and_axes(stage: Stage) -> None:
    await training(stage)
    assert "loss, nats" in stage.text
    assert "step 12 of 12" in stage.text
    assert "A unscaled" in stage.text
    assert "B 1/√d_k" in stage.text
    assert "step at which 90 % were right" in stage.text
    await stage.press("v")
    assert "final loss" in stage.text
    await stage.press("v")
    assert "final loss" not in stage.text
    await stage.press("M")
    assert "recalled" in stage.text
    await stage.press("M")
    assert "entropy / ln n" in stage.text
    await stage.press("M", "z")
    assert "∂L/∂" in stage.text
    assert ", log" not in stage.text


def test_a_loss_far_above_that_of_a_guess_is_drawn_at_the_top() -> None:
    *_, curves = run(replace(SHORT, rules=("none",)))
    shown = snapshot(curves)
    lost = {"loss": [[point._replace(middle=99.0) for point in shown.curves["loss"][0]]]}
    lines = curve_lines(replace(shown, curves=lost), QUANTITIES[0], False, 40, 8, UNICODE)
    assert any(text.strip().startswith("2") for text, _ in lines[2])


def test_wide_curves_end_with_the_names_of_rules_each_on_its_line() -> None:
    *_, curves = run(SHORT)
    shown = snapshot(curves)
    named = {"A unscaled", "B 1/√d_k"}
    for width, expected in ((70, named), (69, set[str]())):
        lines = curve_lines(shown, QUANTITIES[0], False, width, 12, UNICODE)
        ends = ["".join(text for text, _ in line).rstrip().rsplit("  ", 1)[-1] for line in lines]
        assert {end for end in ends if end in named} == expected
    same = {"loss": [[point._replace(middle=1.0) for point in curve] for curve in shown.curves["loss"]]}
    lines = curve_lines(replace(shown, curves=same), QUANTITIES[0], False, 70, 12, UNICODE)
    rows = [y for y, line in enumerate(lines) if line[-1][0].startswith((" A", " B"))]
    assert rows[1] - rows[0] == 1


def test_a_bar_says_when_a_rule_has_learned_and_whether_that_stayed() -> None:
    *_, begun, curves = run(replace(SHORT, rules=("none",)))
    for of, steps, recalled, words in (
        (curves, 21.0, 0.83, "83 %  step 21, fell back"), (curves, 23.0, 0.9, "90 %  step 23"),
        (curves, None, 0.3, "30 %  never"), (begun, 9.0, 0.8, "80 %  step 9"), (begun, None, 0.3, "30 %"),
    ):  # fmt: skip
        shown = snapshot(of)
        shown = replace(shown, results=[replace(shown.results[0], steps_to_learn=steps, recalled=recalled)])
        bar = "".join(text for text, _ in share_lines(shown, 45, UNICODE)[1]).rstrip()
        assert bar.endswith(words)


@played()
async def test_arrows_and_seeds_train_again_and_a_race_that_was_left_goes_on(stage: Stage) -> None:
    pane = await training(stage)
    before = pane.curves.shown
    await stage.press("right")
    assert pane.race.d_k == 16
    await stage.until(lambda: pane.is_current, "the end of the race")
    assert pane.curves.shown is not before
    await stage.press("u")
    assert pane.race == SHORT
    await stage.until(lambda: pane.is_current, "the curves that are known")
    assert pane.curves.shown is before
    await stage.press("right")
    stage.app.action_pane("Lab")
    stage.app.action_pane("Train")
    await stage.until(lambda: pane.is_current, "the end of the race")
    assert present(pane.curves.shown).race.d_k == 16
    await stage.press("r")
    assert pane.race.seed == SHORT.seeds
    await stage.press("R")
    assert pane.race == START


@played()
async def test_another_optimiser_is_chosen_by_its_row(stage: Stage) -> None:
    pane = await training(stage)
    await stage.press("down", "right")
    assert (pane.race.optimiser, pane.race.rate) == ("adam", 0.01)
    await stage.press("down", "right")
    assert pane.race.rate == 0.015625


@played()
async def test_digits_type_into_the_setting_and_a_refused_text_restores_it(stage: Stage) -> None:
    pane = await training(stage)
    await stage.press("3", "2")
    assert pane.race.d_k == 32
    await stage.press("0", "0")
    assert pane.race.d_k == SHORT.d_k
    assert "must be" in stage.text
    await stage.press("escape")
    assert pane.race == SHORT
    await stage.press("down", "down", "0", ".", "5", "enter")
    assert pane.race.rate == 0.5
    await stage.press(*"2e-2", "enter")
    assert pane.race.rate == 0.02
    await stage.press("-")
    assert "not '-'." in stage.words(pane.settings)


@played()
async def test_a_rule_without_a_multiplier_is_named_and_the_last_curves_are_dimmed(stage: Stage) -> None:
    pane = await training(stage, Race(d_k=2, rules=("log_d_k",), steps=5, seeds=2))
    await stage.press("left")
    assert pane.race.d_k == 1
    assert pane.is_stale
    assert "1/ln d_k" in stage.text


@played()
async def test_the_copied_command_runs_the_race_and_the_export_has_its_results(stage: Stage) -> None:
    pane = await training(stage, replace(SHORT, rules=("none", "log(n)/d"), optimiser="adam", rate=0.03, seed=4))
    program, command, *words = shlex.split(pane.command())
    assert (program, command) == ("attn-tui", "train")
    request = COMMANDS["train"].load().request(parser_of("train", UNICODE).read(words))
    assert [*request.question.races] == [pane.race]
    found = json.loads(pane.numbers("json"))
    assert [each["rule"] for each in found["races"][0]["results"]] == ["none", "log(n)/d"]
    assert found["races"][0]["results"][1]["loss"] == present(pane.curves.shown).results[1].loss


@played(size=(40, 12))
async def test_on_the_smallest_screen_every_rule_has_its_line(stage: Stage) -> None:
    await training(stage, replace(SHORT, rules=("none", "sqrt_d_k", "d_k")))
    assert all(
        f"{letter} {name}" in stage.text for letter, name in (("A", "unscaled"), ("B", "1/√d_k"), ("C", "1/d_k"))
    )

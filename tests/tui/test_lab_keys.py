"""The Lab's keys: their effects and bounds, and that none is lost, however fast they are pressed."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from digits import shows_number
from stage import SMALL, Stage, numbers, played


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ("right l right", [{"d_k": 65}, {"d_k": 66}, {"d_k": 67}]),
        ("left h left", [{"d_k": 63}, {"d_k": 62}, {"d_k": 61}]),
        ("up k right up", [{"d_k": 128}, {"d_k": 256}, {"d_k": 257}, {"d_k": 512}]),
        ("down j left down", [{"d_k": 32}, {"d_k": 16}, {"d_k": 15}, {"d_k": 8}]),
        ("pageup pageup pageup", [{"d_k": 80}, {"d_k": 96}, {"d_k": 128}]),
        ("pagedown pagedown pagedown", [{"d_k": 32}, {"d_k": 16}, {"d_k": 16}]),
        ("] ] [", [{"n_keys": 32}, {"n_keys": 64}, {"n_keys": 32}]),
        ("s down enter", [{}, {"scale": "d_k"}, {"scale": "d_k"}]),
        ("S S", [{"scale": "d_k"}, {"scale": "log_d_k"}]),
        ("A A", [{"against": rule} for rule in ("sqrt_d_k", "d_k")]),
        ("C C", [{"components": "uniform"}, {"components": "laplace"}]),
        ("X X", [{"mask": "causal"}, {"mask": "none"}]),
        ("r r", [{"seed": 1}, {"seed": 2}]),
        ("5 1 2", [{"d_k": 5}, {"d_k": 51}, {"d_k": 512}]),
        ("5 1 backspace 7", [{"d_k": 5}, {"d_k": 51}, {"d_k": 5}, {"d_k": 57}]),
        ("5 enter 7", [{"d_k": 5}, {"d_k": 5}, {"d_k": 7}]),
        ("5 right 7", [{"d_k": 5}, {"d_k": 6}, {"d_k": 7}]),
        ("1 left 7", [{"d_k": 1}, {"d_k": 1}, {"d_k": 7}]),  # a key without effect ends typing too
        ("5 1 escape", [{"d_k": 5}, {"d_k": 51}, {"d_k": 64}]),
        ("X 5 escape escape", [{"mask": "causal"}, {"mask": "causal", "d_k": 5}, *[{"mask": "causal"}] * 2]),
        ("escape backspace", [dict[str, Any]()] * 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@played()
async def test_each_key_changes_its_parameter(stage: Stage, keys: str, changes: list[dict[str, Any]]) -> None:
    for key, change in zip(keys.split(), changes, strict=True):
        await stage.press(key)
        assert stage.asked == replace(SMALL, **change), key
    await stage.settled()
    assert shows_number(stage.lines, f"{stage.asked.d_k}{'_' if stage.panel.editing else ''}")


@pytest.mark.parametrize(
    ("parameters", "key", "back"),
    [
        (replace(SMALL, d_k=1), "left", "right"),
        (replace(SMALL, d_k=1), "down", "right"),
        (replace(SMALL, d_k=16_384), "right", "left"),
        (replace(SMALL, d_k=16_384), "up", "left"),
        (replace(SMALL, d_k=576), "pageup", "left"),
        (replace(SMALL, d_k=16), "pagedown", "left"),
        (replace(SMALL, n_keys=1), "[", "right"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@played()
async def test_keys_stop_at_bounds(stage: Stage, parameters: Parameters, key: str, back: str) -> None:
    await stage.press(key, key)
    assert stage.asked == parameters
    await stage.press(back)
    assert stage.asked == replace(parameters, d_k=parameters.d_k + (1 if back == "right" else -1))


@played()
async def test_an_arrow_held_for_twelve_repeats_steps_by_a_tenth(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.tui.panes.stepping.HELD", 60.0)  # seconds, however slow the machine is
    for keys, d_k in (["right"] * 12, 76), (["right"], 83), (["left"], 82):
        await stage.press(*keys)
        assert stage.asked.d_k == d_k


@played(settled=True)
async def test_every_change_shows_the_measurement_that_a_fresh_run_gives(stage: Stage) -> None:
    for key in ("right", "up", "]", "s", "c", "x", "r", "9"):
        await stage.press(key)
        await stage.settled()
        assert numbers(stage.measurement) == numbers(stage.expected), key


@played(settled=True)
async def test_going_back_to_a_value_shows_the_same_numbers_and_typing_after_tab_sets_the_field(stage: Stage) -> None:
    before, screen = numbers(stage.measurement), stage.text
    await stage.press("up", "up", "up")
    await stage.settled()
    assert stage.asked.d_k == 512
    assert stage.text != screen
    await stage.press("down", "down", "down")
    await stage.settled()
    assert numbers(stage.measurement) == before
    assert stage.text == screen
    stage.send("tab", "tab", "3", "2", "enter")
    await stage.answered()
    assert stage.asked == replace(SMALL, n_keys=32)


# Fast keys

"""The Lab's keys: their effects and bounds, and that none is lost, however fast they are pressed."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.models import next_width
from attn_tui.core.parameters import FIELD, ParameterError, Parameters, Value
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.numbers import aligned
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
    row = next(line for line in stage.part(stage.panel) if line.split()[:1] == ["d_k"])
    assert row.split()[:2] == ["d_k", f"{stage.asked.d_k}{'_' if stage.panel.editing else ''}"]
    assert f"d_k {stage.asked.d_k} " in stage.lines[0] + " "


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


@played(settled=True)
async def test_every_change_shows_the_measurement_that_a_fresh_run_gives(stage: Stage) -> None:
    for key in ("right", "up", "]", "s", "c", "x", "r", "9"):
        await stage.press(key)
        await stage.settled()
        assert numbers(stage.measurement) == numbers(stage.expected), key


@played(settled=True)
async def test_going_back_to_a_value_shows_the_same_numbers(stage: Stage) -> None:
    before, screen = numbers(stage.measurement), stage.text
    await stage.press("up", "up", "up")
    await stage.settled()
    assert stage.asked.d_k == 512
    assert stage.text != screen
    await stage.press("down", "down", "down")
    await stage.settled()
    assert numbers(stage.measurement) == before
    assert stage.text == screen


# Fast keys


@pytest.mark.slow
@played()
async def test_after_a_held_key_the_last_value_is_measured_and_shown(stage: Stage) -> None:
    stage.send(*["right"] * 100)
    await stage.until(lambda: stage.asked.d_k == 164, "d_k 164")
    await stage.settled()
    assert numbers(stage.measurement) == numbers(stage.expected)
    row = next(line for line in stage.part(stage.table) if line.split()[:2] == ["logit", "std"])
    assert aligned(stage.measurement.columns[0].measured["logit_std"].value, UNICODE).strip() in row


@pytest.mark.slow
@played(settled=True)
async def test_a_held_key_loses_no_step_however_fast_it_repeats(stage: Stage) -> None:
    for turns in (0, 1, 2, 3, 5):
        start = stage.asked.d_k
        for _ in range(50):
            stage.send("right")
            for _ in range(turns):
                await asyncio.sleep(0)
        await stage.answered()
        assert stage.asked.d_k == start + 50, turns
    await stage.settled()
    assert numbers(stage.measurement) == numbers(stage.expected)


class OneByOne:
    """Computes the parameters after keys that are pressed one by one."""

    def __init__(self, parameters: Parameters) -> None:
        self.asked = self.before = parameters
        self.typed: str | None = None

    def press(self, key: str) -> None:
        if key.isdigit() or (key == "backspace" and self.typed is not None):
            if self.typed is None:
                self.before = self.asked
            self.typed = (self.typed or "")[:-1] if key == "backspace" else (self.typed or "") + key
            try:
                self.change("d_k", FIELD["d_k"].parse(self.typed))
            except ParameterError:  # of a refused text, nothing is kept
                self.asked = self.before
            return
        if key == "escape" and self.typed is not None:
            self.asked = self.before
        self.typed = None
        steps = {"S": "scale", "C": "components", "X": "mask", "r": "seed"}
        steps |= {"up": "d_k", "down": "d_k", "]": "n_keys", "[": "n_keys"}
        if key in steps:
            name = steps[key]
            self.change(name, FIELD[name].stepped(getattr(self.asked, name), -1 if key in ("down", "[") else 1))
        elif key in ("pageup", "pagedown"):
            self.change("d_k", next_width(self.asked.d_k, 1 if key == "pageup" else -1))
        elif key in ("left", "right"):
            d_k = self.asked.d_k + (1 if key == "right" else -1)
            if FIELD["d_k"].low <= d_k <= FIELD["d_k"].high:
                self.change("d_k", d_k)

    def change(self, name: str, value: Value) -> None:
        self.asked = self.asked.with_value(name, value)


STEPPING = ["right", "left", "up", "down", "pageup", "pagedown", "]", "[", "S", "C", "X", "r"]
TYPING = [*STEPPING, *"0123456789", "backspace", "escape"]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "seed"), [(STEPPING, 0), (TYPING, 1), (TYPING, 2)])
@played()
async def test_bursts_of_keys_have_the_effect_of_single_keys(stage: Stage, keys: Sequence[str], seed: int) -> None:
    chance, expected = random.Random(seed), OneByOne(SMALL)
    await stage.settled()
    for key in chance.choices(keys, k=80):
        expected.press(key)
        stage.send(key)
        for _ in range(chance.choice([0, 0, 0, 1, 2, 3, 8])):
            await asyncio.sleep(0)
    await stage.answered()
    assert stage.asked == expected.asked


@played(settled=True)
async def test_typing_right_after_tab_goes_into_the_field(stage: Stage) -> None:
    stage.send("tab", "tab", "3", "2", "enter")
    await stage.answered()
    assert stage.asked == replace(SMALL, n_keys=32)

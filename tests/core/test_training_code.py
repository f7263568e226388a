"""The code of training races: it trains to the same losses, in PyTorch with PyTorch's gradients and optimisers."""

import re
from typing import Any

import pytest
from attn_tui.core.program.text import Dialect
from attn_tui.core.program.training import training_code
from attn_tui.core.training.race import results, run
from attn_tui.core.training.settings import Race, Task
from printed_code import INSTALLED, compared, expected_in, printed_by

SHORT = {"steps": 25, "seeds": 3}
NORMS = ("rms_sqrt_d_k", "layer_norm_sqrt_d_k", "cosine_10")


def program(dialect: Dialect, *d_ks: int, **settings: Any) -> str:
    found: list[Any] = []
    for d_k in d_ks:
        race = Race(d_k, **settings)
        *_, curves = run(race)
        found.append((race, results(curves), None))
    return training_code(found, dialect, "attn-tui train")


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimiser": "adam", "rate": 0.02, "warm_up": 10, "seed": 5},
        {"rules": NORMS, "rate": 2.0},
        {"rules": ("layer_norm_none", "log(n)/sqrt(d)", "0.05")},
        {"rules": ("sqrt_d_k", "rms_sqrt_d_k"), "optimiser": "adam", "rate": 0.01},
        {"rules": ("inverse_layer", "yarn")},
        {"steps": 5, "seeds": 1},
        {"rate": 1e4, "task": Task(width=5, pairs=4, labels=3, batch=2), "rules": ("sqrt_d_k",)},
    ],
    ids=str,
)
def test_the_code_of_a_race_trains_to_the_same_losses(settings: dict[str, Any], dialect: Dialect) -> None:
    text = program(dialect, 6, 40, **(SHORT | settings))
    assert len(expected_in(text)) == 2 * len(settings.get("rules", Race.rules))
    if settings.get("rate") != 1e4:
        assert compared(text) == ""
    else:  # what such runs recall is noise
        assert [line.split()[-1] for line in printed_by(text)] == ["1", "1"]


@pytest.mark.soak
@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("settings", [{"rate": 5.0}, {"rate": 0.01, "optimiser": "adam"}], ids=str)
def test_a_whole_race_is_reproduced(settings: dict[str, Any], dialect: Dialect) -> None:
    text = program(dialect, 64, 256, rules=("none", "sqrt_d_k"), **settings)
    for line, (name, wanted) in zip(printed_by(text), expected_in(text).items(), strict=True):
        loss, _, steps, diverged = (float(word) for word in line.removeprefix(name).split())
        if re.match("sqrt", name):
            assert loss == pytest.approx(wanted[0].value, rel=1e-3)
            assert steps == wanted[2].value
        else:  # chaotic: rounding alone, which is a machine's own, changes the loss, and few seeds have wild tails
            assert wanted[0].value / 3 < loss < wanted[0].value * 3
            assert steps == pytest.approx(wanted[2].value, rel=0.5)
        assert diverged == wanted[3].value

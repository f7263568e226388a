"""Whatever is typed, clicked, pasted or resized, what a pane shows is current, dimmed or being computed."""

from pathlib import Path

import pytest
from attn_tui.tui.panes.claims.requests import CheckClaims
from monkey import run
from stage import untested_claims

pytestmark = pytest.mark.slow

EVENTS = 80


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 8))])
def test_random_events_end_no_app_and_leave_nothing_stale(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # exports are written here
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    assert run(seed, lambda events: events < EVENTS) >= EVENTS

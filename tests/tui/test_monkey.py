"""Whatever is typed, clicked, pasted or resized, what a pane shows is current, dimmed or being computed."""

import resource
from pathlib import Path

import pytest
from attn_tui.tui.panes.claims.requests import CheckClaims
from monkey import run
from stage import untested_claims

pytestmark = pytest.mark.slow

EVENTS = 80
MEMORY = 300 << 10  # kB that one monkey may add


@pytest.mark.parametrize("seed", range(4))
def test_random_events_end_no_app_and_leave_nothing_stale(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # exports are written here
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(seed, lambda events: events < EVENTS) >= EVENTS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY

"""Tests assert nothing about time, share the processors, and read and write no settings of the user."""

import gc
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
    gc.disable()  # until tests are collected
os.environ["PYTHONWARNINGS"] = "error"  # of the processes that tests start; pytest has its own filters

settings.register_profile("untimed", deadline=None)
settings.register_profile("few", deadline=None, max_examples=25)  # of `make test`
settings.load_profile("untimed")

HOMES = itertools.count()


def pytest_collection_finish() -> None:
    """Let the collector of garbage leave alone what lives as long as the tests, and run more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(autouse=True)
def own_config(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty config directory for each test, in this process and in those it starts; a state directory, too."""
    for name in os.environ:
        if name.startswith("ATTN_TUI_"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / f"home-{next(HOMES)}"
    for name in ("config", "state"):
        (home / name).mkdir(parents=True)
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(home / name))
    return home / "config"


@pytest.fixture(autouse=True)
def even_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in a burst are pressed one by one: how fast they come does not change what they do."""
    if "attn_tui.tui.panes.stepping" in sys.modules:
        monkeypatch.setattr("attn_tui.tui.panes.stepping.HELD", 0)


@pytest.fixture
def short_rule_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare rules and mechanisms at few d_k, so that tests are quick."""
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.LAST", 16)
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.DRAWS", 2)
    monkeypatch.setattr("attn_tui.core.lab.mechanisms.D_KS", (16, 64))

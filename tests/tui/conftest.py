"""No test reads or writes what whoever runs it has configured, nor leaves reports in their state directory."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_config(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty config directory for each test, for what runs in this process and for what it starts."""
    for name in os.environ:
        if name.startswith("ATTN_TUI_"):
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    return folder

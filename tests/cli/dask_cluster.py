"""A Dask cluster on this machine, as users start one: a scheduler and workers, each a process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 300  # seconds until a test gives up


@dataclass
class Cluster:
    """A scheduler and workers, each a process that works in the folder."""

    folder: Path
    options: tuple[str, ...] = ()  # of the scheduler
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # of all processes
    scheduler: subprocess.Popen[bytes] = field(init=False)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])
    address: str = ""

    def __post_init__(self) -> None:
        file = self.folder / "scheduler.json"
        place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        self.scheduler = self._dask("scheduler", *place, *self.options)
        self._wait_for(file, "}")
        self.address = json.loads(file.read_text())["address"]

    def add_worker(self, *options: str) -> None:
        self.workers.append(
            self._dask("worker", self.address, "--nthreads", "1", "--local-directory", str(self.folder), *options)
        )

    @property
    def executor(self) -> tuple[str, str]:
        """The option that names it, once all its workers are there."""
        for number in range(1, len(self.workers) + 1):
            self._wait_for(self.folder / f"{number}.log", "Registered to:")
        return "--executor", f"dask:{self.address}"

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait(PATIENCE)

    def _dask(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        env = {**os.environ, "PYTHONWARNINGS": "", **self.env}  # Dask has warnings of its own
        with (self.folder / f"{len(self.workers) + (words[0] == 'worker')}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=self.folder)

    @staticmethod
    def _wait_for(file: Path, text: str) -> None:
        limit = time.monotonic() + PATIENCE
        while not (file.exists() and text in file.read_text()):
            assert time.monotonic() < limit
            time.sleep(0.1)

"""Wait for the import of a module, without PyTorch."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any


class ImportWatcher:
    """A finder that finds one module as the others do, and has its loader call a function once, at the end."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name = name
        self._call = call
        self._searching = False

    def start(self) -> None:
        """Wait from now on, unless this waits already."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module that is waited for; None for any other."""
        if name != self._name or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        run = getattr(loader, "exec_module", None)
        if run is None:  # an old kind of loader
            return

        def exec_module(module: ModuleType) -> None:
            if "exec_module" in vars(loader):  # others may wait, too, and have deleted it
                del loader.exec_module  # which hides the class's
            run(module)
            self.stop()
            self._call()

        with suppress(AttributeError):  # a loader without a dictionary
            loader.exec_module = exec_module

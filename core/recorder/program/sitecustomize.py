"""Python runs this when it starts in a program that is being recorded: wait for PyTorch, and step aside.

The folder is on PYTHONPATH. The recorder is loaded by its path, because the program's environment need not have
attn-tui. A sitecustomize of the user's own, which this one hides, is run as it would have been.
"""

import os
import sys
from importlib import machinery, util

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def _load_recorder() -> None:
    recorder = os.path.dirname(_FOLDER)
    spec = util.spec_from_file_location(
        "attn_tui_recorder", os.path.join(recorder, "__init__.py"), submodule_search_locations=[recorder]
    )
    if spec is None or spec.loader is None:
        return
    package = util.module_from_spec(spec)
    sys.modules["attn_tui_recorder"] = package
    spec.loader.exec_module(package)
    from attn_tui_recorder.reports import wait  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    wait()


def _run_hidden() -> None:
    """Run the sitecustomize that this one hides, as `sitecustomize`; raise ImportError, as without it, if none is."""
    spec = machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")  # which Python expects
    hidden = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = hidden
    spec.loader.exec_module(hidden)


try:
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != _FOLDER]
    if sys.version_info >= (3, 10):  # noqa: UP036 - any Python of the program runs this
        _load_recorder()
except Exception as error:  # the program runs all the same
    sys.stderr.write(f"attn-tui: cannot record: {type(error).__name__}: {error}\n")
_run_hidden()

"""Python runs this when it starts in a program that is being recorded: wait for PyTorch, and step aside.

The folder is on PYTHONPATH. The recorder is loaded by its path, because the program's environment need not have
attn-tui. A sitecustomize of the user's own, which this one hides, is run as it would have been.
"""

import sys
from importlib import machinery, util
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def _load_recorder() -> None:
    recorder = _FOLDER.parent
    spec = util.spec_from_file_location(
        "attn_tui_recorder", recorder / "__init__.py", submodule_search_locations=[str(recorder)]
    )
    if spec is None or spec.loader is None:
        return
    package = util.module_from_spec(spec)
    sys.modules["attn_tui_recorder"] = package
    spec.loader.exec_module(package)
    from attn_tui_recorder.waiting import wait  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    wait()


def _run_hidden() -> None:
    """Run the sitecustomize that this one hides, as `sitecustomize`."""
    spec = machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        hidden = util.module_from_spec(spec)
        sys.modules["sitecustomize"] = hidden
        spec.loader.exec_module(hidden)


sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _FOLDER]
try:
    _load_recorder()
except Exception as error:  # the program runs all the same
    sys.stderr.write(f"attn-tui: cannot record: {type(error).__name__}: {error}\n")
_run_hidden()

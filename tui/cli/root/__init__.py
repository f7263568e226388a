"""attn-tui: see, predict and debug the scale in scaled dot-product attention.

The command line and the app are clients of the same core; docs/python.md shows the library. Importing this package
takes milliseconds: NumPy is loaded at the first use of a name, and PyTorch only by `record` and `testing`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import takes milliseconds
if TYPE_CHECKING:
    from attn_tui.core.api import RULES as RULES
    from attn_tui.core.api import STATISTICS as STATISTICS
    from attn_tui.core.api import check as check
    from attn_tui.core.api import claims as claims
    from attn_tui.core.api import compare as compare
    from attn_tui.core.api import cost as cost
    from attn_tui.core.api import diagnose as diagnose
    from attn_tui.core.api import learn as learn
    from attn_tui.core.api import measure as measure
    from attn_tui.core.api import open as open
    from attn_tui.core.api import predict as predict
    from attn_tui.core.api import sweep as sweep
    from attn_tui.core.api import watch as watch
    from attn_tui.core.captures.files.save import call as call
    from attn_tui.core.captures.files.save import record_jax as record_jax
    from attn_tui.core.captures.files.save import save as save
    from attn_tui.core.errors import InputError as InputError
    from attn_tui.core.recorder.api import record as record

    __version__: str

_API = "attn_tui.core.api"
_MODULES = {
    **dict.fromkeys(
        (
            *("RULES", "STATISTICS", "check", "claims", "compare", "cost", "diagnose", "learn", "measure", "open"),
            *("predict", "sweep", "watch"),
        ),
        _API,
    ),
    **dict.fromkeys(("call", "record_jax", "save"), "attn_tui.core.captures.files.save"),
    "InputError": "attn_tui.core.errors",
    "record": "attn_tui.core.recorder.api",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from attn_tui.core import VERSION

        return VERSION
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"attn_tui.{name} needs PyTorch: pip install 'attn-tui[torch]'", name="torch"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "__version__"})

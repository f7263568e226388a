"""attn-tui: see, predict and debug the scale in scaled dot-product attention.

The command line and the app are clients of the same core; docs/python.md shows the library. Importing this package
takes milliseconds: NumPy is loaded at the first use of a name, and PyTorch or JAX only by calls of what records them.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import takes milliseconds
if TYPE_CHECKING:
    from attn_tui import testing as testing
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
    from attn_tui.core.captures.calls.call import call as call
    from attn_tui.core.captures.calls.jax_recording import record_jax as record_jax
    from attn_tui.core.captures.calls.save import save as save
    from attn_tui.core.errors import InputError as InputError
    from attn_tui.core.recorder.api import record as record

    __version__: str

__all__ = [
    "RULES",
    "STATISTICS",
    "InputError",
    "call",
    "check",
    "claims",
    "compare",
    "cost",
    "diagnose",
    "learn",
    "measure",
    "open",
    "predict",
    "record",
    "record_jax",
    "save",
    "sweep",
    "watch",
]
_MODULES = {
    **dict.fromkeys(__all__, "attn_tui.core.api"),
    "call": "attn_tui.core.captures.calls.call",
    "save": "attn_tui.core.captures.calls.save",
    "InputError": "attn_tui.core.errors",
    "record": "attn_tui.core.recorder.api",
    "record_jax": "attn_tui.core.captures.calls.jax_recording",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from attn_tui.core import VERSION

        return VERSION
    if name == "testing":
        return import_module("attn_tui.testing")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return what is public, and what Python itself keeps here."""
    return sorted({*__all__, "testing", "__version__", *(each for each in globals() if each.startswith("__"))})

"""attn-tui: see, predict and debug the scale in scaled dot-product attention.

The command line and the app are clients of the same core; docs/python.md shows the library. Importing this package
takes milliseconds: NumPy is loaded at the first use of a name, and PyTorch or JAX only by calls of what records them.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import takes milliseconds
if TYPE_CHECKING:
    from attn_tui import testing as testing
    from attn_tui.core.api.captures import Capture, Head, HeadMeasurement, HeadReplay, open
    from attn_tui.core.api.commands import RULES, STATISTICS, claims, cost, learn, watch
    from attn_tui.core.api.judging import check, compare, diagnose
    from attn_tui.core.api.lab import Exact, Lab, Sweep, measure, predict, sweep
    from attn_tui.core.api.result import Answer, Result
    from attn_tui.core.api.verdicts import Check, Diagnosis, Differences
    from attn_tui.core.captures.calls.call import Call, call, save
    from attn_tui.core.captures.calls.jax_recording import record_jax
    from attn_tui.core.captures.capture import Layer
    from attn_tui.core.diagnosis.results import Verdict
    from attn_tui.core.errors import InputError
    from attn_tui.core.recorder.api import record
    from attn_tui.core.statistics.measurement import Estimate

    __version__: str

__all__ = [
    "RULES",
    "STATISTICS",
    "Answer",
    "Call",
    "Capture",
    "Check",
    "Diagnosis",
    "Differences",
    "Estimate",
    "Exact",
    "Head",
    "HeadMeasurement",
    "HeadReplay",
    "InputError",
    "Lab",
    "Layer",
    "Result",
    "Sweep",
    "Verdict",
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
    name: module
    for module, names in (
        ("api.captures", "Capture Head HeadMeasurement HeadReplay open"),
        ("api.commands", "RULES STATISTICS claims cost learn watch"),
        ("api.judging", "check compare diagnose"),
        ("api.lab", "Exact Lab Sweep measure predict sweep"),
        ("api.result", "Answer Result"),
        ("api.verdicts", "Check Diagnosis Differences"),
        ("captures.calls.call", "Call call save"),
        ("captures.calls.jax_recording", "record_jax"),
        ("captures.capture", "Layer"),
        ("diagnosis.results", "Verdict"),
        ("errors", "InputError"),
        ("recorder.api", "record"),
        ("statistics.measurement", "Estimate"),
    )
    for name in names.split()
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from attn_tui.core import VERSION

        return VERSION
    if name == "testing":
        return import_module("attn_tui.testing")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"attn_tui.core.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return what is public, and what Python itself keeps here."""
    return sorted({*__all__, "testing", "__version__", *(name for name in globals() if name.startswith("__"))})

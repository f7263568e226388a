"""attn-tui: see, predict and debug the scale in scaled dot-product attention, from a terminal.

`attn_tui.record` records the attention of PyTorch models; only its first use imports PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attn_tui.core.recorder.api import record as record


def __getattr__(name: str) -> object:
    if name != "record":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from attn_tui.core.recorder.api import record
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "attn_tui.record needs PyTorch: pip install 'attn-tui[torch]'", name="torch"
        ) from error
    return record

"""The program of a head that is checked: the figures that limits apply to."""

from __future__ import annotations

from ....captures.head import CaptureFile
from ....diagnosis.check import Figures
from ..program import Dialect
from .figures import Figure, figures_code


def checked_code(capture: CaptureFile, found: Figures, dialect: Dialect, command: str) -> str:
    """Return the program that prints what is checked of a head; raise InputError if there is none."""
    figures = {
        "largest_logit": Figure("largest |logit|", found.largest_logit),
        "spread": Figure("standard deviation within rows", found.spread),
        "token_spread": Figure("spread of q or k over tokens", found.token_spread),
        "entropy_fraction": Figure("entropy / ln n", found.entropy_fraction),
        "one_hot_rows": Figure("share of one-hot rows", found.one_hot_rows),
        "first_key_weight": Figure("weight on the first key", found.first_key_weight),
    }
    comments = [command, f"layer {found.layer.index}, head {found.head}"]
    return figures_code(capture, found.layer, found.head, figures, dialect, comments)

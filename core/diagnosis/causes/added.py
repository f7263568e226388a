"""A boolean mask that is added to the logits."""

from __future__ import annotations

import numpy as np

from ..results import Finding
from ..subject import Subject, places


def mask_added(subject: Subject) -> Finding | None:
    """Return the finding that the file's bias is a boolean mask, added to the logits as 1 and 0; None if it is not.

    It has these two numbers on the keys that a query sees, and is a triangle, or the same for all queries.
    """
    bias = subject.bias
    if bias is None:
        return None
    shown = bias if subject.seen is None else bias[subject.seen]
    if not (np.any(shown == 0) and np.any(shown == 1) and np.all((shown == 0) | (shown == 1))):
        return None
    earlier = places(bias.shape[-1]) <= subject.positions[:, np.newaxis]
    kinds = (earlier, ~earlier, bias[:, :1])
    hidden = False if subject.seen is None else ~subject.seen
    if not any(np.all((bias == kind) | hidden) for kind in kinds):
        return None
    says = "a mask of True and False was added to the logits, as 1 and 0: it hides no key; −∞ does, or a boolean mask"
    return Finding("mask-added", says, ("bias-extra",), "mask")

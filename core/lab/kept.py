"""Which curves of theory are at hand: known without loading theory, or NumPy."""

from __future__ import annotations

from ..parameters import Parameters

# Numbers of keys whose curves are in a file: those that pressing a key leads to.
KEPT_CURVES = tuple(2**power for power in range(1, 14))


def curves_to_make(p: Parameters) -> int | None:
    """For how many keys theory has to make its curves first, a part of a second; None where it need not."""
    at_hand = p.components != "normal" or p.mask == "causal" or p.n_keys == 1 or p.n_keys in KEPT_CURVES
    return None if at_hand else p.n_keys

"""Read the columns of a measurement from its tally."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .counting import count, histogram
from .histogram import Axis, Histogram
from .measurement import Column, Estimate, HistogramName
from .summary import estimates, estimates_of_norms
from .tally import GRADIENTS, JACOBIAN, WEIGHTS, Tally


def columns(tally: Tally, draws: int, unbiased: bool) -> tuple[Column, ...]:
    """Return the columns of the first `draws` draws; exactly their blocks must have been added."""
    axis = replace(tally.axis, low=tally.axis.low + tally.centre, high=tally.axis.high + tally.centre)
    logits = histogram(tally.counts["logits", 0], axis) if "logits" in tally.histograms else None
    axes: dict[HistogramName, Axis] = {"weights": WEIGHTS, "entropy": tally.entropies, "jacobian_norm": JACOBIAN}
    result: list[Column] = []
    for index, (rule, multiplier) in enumerate(tally.rules):
        sums = {name: each[:draws] for name, each in (tally.score_sums | tally.row_sums[index]).items()}
        measured = dict(estimates(sums, tally.centre, multiplier, unbiased))
        every = tally.gradient_norms
        norms = None if every is None else every[index, :draws]
        if tally.sink is None:
            measured["sink_weight"] = Estimate(None, None)
        if norms is not None:
            measured |= estimates_of_norms(norms)
        if tally.smallest <= tally.largest:
            measured["logit_min"] = Estimate(multiplier * (tally.centre + tally.smallest), None)
            measured["logit_max"] = Estimate(multiplier * (tally.centre + tally.largest), None)
        histograms: dict[HistogramName, Histogram] = {} if logits is None else {"logits": logits.scaled(multiplier)}
        for name in tally.histograms:
            if name in axes:
                histograms[name] = histogram(tally.counts[name, index], axes[name])
        if norms is not None:
            logs = np.log10(np.maximum(norms[~np.isnan(norms)], np.finfo(norms.dtype).tiny))
            histograms["gradient"] = histogram(count(logs, GRADIENTS), GRADIENTS)
        result.append(Column(rule, multiplier, measured, histograms))
    return tuple(result)

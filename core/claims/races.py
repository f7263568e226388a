"""What runs of the training race recall, for claims and for the tour."""

from __future__ import annotations

from collections.abc import Mapping

from ..arrays import FloatArray
from ..statistics.measurement import Estimate
from ..training.race import recalled_at_end, results, run
from ..training.settings import Race
from .claim import Reading
from .trials import mean_over_draws


def raced(race: Race) -> Mapping[str, Reading]:
    """Train under each rule of a race; ± is a standard error over seeds.

    Return of each rule `RULE loss` and `RULE recalled`, at the end, and of each pair `RULE recalled − OTHER`, the
    difference of two that are trained; `RULE under OTHER`, what weights trained under the one recall under the other;
    and `RULE under OTHER − RULE`, how much more that is than under their own rule.
    """
    *_, curves = run(race)
    assert curves.used is not None, "the race has ended"
    recalled = recalled_at_end(curves)
    found: dict[str, Reading] = {}
    for place, result in enumerate(results(curves)):
        rule, own = result.rule, curves.used[place, place]
        found[f"{rule} loss"] = Reading(Estimate(result.loss, result.loss_error))
        found[f"{rule} recalled"] = _over_seeds(recalled[place])
        for at, other in enumerate(race.rules):
            found[f"{rule} recalled − {other}"] = _over_seeds(recalled[place] - recalled[at])
            found[f"{rule} under {other}"] = _over_seeds(curves.used[place, at])
            found[f"{rule} under {other} − {rule}"] = _over_seeds(curves.used[place, at] - own)
    return found


def _over_seeds(each: FloatArray) -> Reading:
    """Return the mean over seeds, with a standard error if there are several."""
    return Reading(mean_over_draws(each) if len(each) > 1 else Estimate(float(each[0]), None))

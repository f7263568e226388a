"""The multiplier of a scale rule, as a Python expression of d_k, n and what else the rule depends on."""

from __future__ import annotations

from ....errors import ParameterError
from ....formula import as_python
from ....parameters import Parameters, rows_differ, scales_vectors
from ....scales import SCALE_RULES, ScaleName, row_multiplier, scale_rule

# The names of the programs' variables, by the names of the fields that a rule may need.
VARIABLES = {"d_k": "d_k", "n_keys": "n", "layer": "layer", "position": "position", "context_factor": "s",
             "temperature": "t"}  # fmt: skip
_IN_FORMULAS = {"d": "d_k", "n": "n", "layer": "layer", "pos": "position"}

# A test compares each with the rule's own function. `log` and `log2` are those of the module math.
CODE: dict[ScaleName, str] = {
    "none": "1.0",
    "sqrt_d_k": "1 / d_k**0.5",
    "d_k": "1 / d_k",
    "log_d_k": "1 / log(d_k)",
    "two_sqrt_d_k": "1 / (2 * d_k**0.5)",
    "sqrt_three_d_k": "1 / (3 * d_k) ** 0.5",
    "inverse_layer": "1 / d_k**0.5 / (layer + 1)",
    "quarter": "1 / d_k**0.5",
    "gemma": "256**-0.5",
    "gemma2_27b": "144**-0.5",
    "gemma3_27b": "168**-0.5",
    "granite_2b": "0.015625",
    "granite_8b": "0.0078125",
    "yarn": "(1 + 0.1 * log(s)) ** 2 / d_k**0.5",
    "deepseek_v2": "(1 + 0.0707 * log(s)) ** 2 / d_k**0.5",
    "longrope": "(1 + log(s) / log(4096)) / d_k**0.5",
    "llama4_position": "(1 + 0.1 * log(1 + (position + 1) // 8192)) / d_k**0.5",
    "ministral3_position": "(1 + 0.1 * log(1 + position // 16384)) / d_k**0.5",
    "ssmax": "0.43 * log(n) / d_k**0.5",
    "log512_n": "log(n) / log(512) / d_k**0.5",
    "rms_sqrt_d_k": "1 / d_k**0.5",
    "rms_gemma3_27b": "168**-0.5",
    "rms_none": "1.0",
    "layer_norm_sqrt_d_k": "1 / d_k**0.5",
    "layer_norm_none": "1.0",
    "cosine_sqrt_d_k": "d_k**0.5",
    "cosine_1": "1.0",
    "cosine_10": "10.0",
    "cosine_learned": "t",
    "cosine_log2_n": "log2(n**2 - n)",
}
_ON_VECTORS: dict[ScaleName, str] = {"quarter": "d_k**-0.25"}  # the root of the multiplier


def rule_code(name: ScaleName, multiplier: float) -> str:
    """Return the multiplier of a rule; `multiplier` is that of the rule `custom`."""
    if name == "custom":
        return repr(float(multiplier))
    return CODE[name] if name in SCALE_RULES else as_python(name, _IN_FORMULAS)


def factor_code(p: Parameters) -> str:
    """Return what multiplies q and k each instead of their score; empty if the score is multiplied."""
    return _ON_VECTORS[p.scale] if scales_vectors(p, p.scale) else ""


def scale_code(p: Parameters, n_swept: bool = False) -> str:
    """Return the multiplier of a setting's rule: a number, or a column with one for each row where rows differ.

    With `n_swept`, the program runs over numbers of keys.
    """
    text = rule_code(p.scale, p.multiplier)
    if not rows_differ(p, p.scale):
        return text
    last = "min(m, n)" if n_swept else "m" if p.n_queries <= p.n_keys else "n"
    seen = f"range(1, {last} + 1)"
    own = f"[{text}]"
    if _undefined_alone(p):
        own = f"[{text} if n > 1 else 0]"  # a row with one key has weight 1 whatever its multiplier is
    rows = f"[{own} for n in {seen}]"
    if p.n_queries > p.n_keys or n_swept:
        rows += f" + [[{text}]] * {'max(m - n, 0)' if n_swept else '(m - n)'}"
    return rows


def _undefined_alone(p: Parameters) -> bool:
    """Return whether the rule has no multiplier for a row that sees one key."""
    from dataclasses import replace

    try:
        return row_multiplier(p.scale, replace(p.setting, n_keys=1)) == 0
    except ParameterError:
        return False


def needed(name: ScaleName) -> list[str]:
    """Return the fields that a rule's code needs besides d_k and the number of keys."""
    return [need for need in scale_rule(name).needs if need not in ("d_k", "n_keys", "multiplier")]

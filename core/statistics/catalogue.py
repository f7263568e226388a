"""STATISTICS: the one declaration of every measured number.

The table, the reports, the help and the theory take a statistic's name, label and definition from its row here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..message import message

ONE_HOT = 0.95  # a row is one-hot when its largest weight is above this
DEAD = 0.01  # a row is dead when the Frobenius norm of its softmax Jacobian is below this
FAR = 4.0  # a measured value further than this many standard errors from the exact one disagrees with it
SINK = 0.3  # a head is a sink when the average weight on the first key, or on a sink logit, is above this
UNIFORM = 0.98  # attention is uniform when its entropy is above this share of ln n
MUCH_LOST = 0.01  # the share of weight whose loss to rounding is named
_REST, EXPORTED = 100, 101  # ranks of statistics


class Statistic(NamedTuple):
    """One measured number: its name in every format, its label, its definition and its source."""

    name: str
    label: str
    group: Literal["logits", "attention", "Jacobian", "gradient", "numerics"]
    unit: Literal["number", "nats", "keys", "share"]  # a share is shown in per cent
    formula: str
    definition: str
    source: str
    short: str = ""  # a label of at most 15 characters, if `label` is longer
    conditional: bool = False  # whether it exists only with some parameters
    code: str = ""  # the expression that programs print (core/program/statistics.py); empty: they leave it out
    rank: int = _REST  # tables with little room show the rows of the lowest ranks, but always those of rank 0

    @property
    def exported_only(self) -> bool:
        """Whether no table on screen has a row of it, because another row says the same of a head."""
        return self.rank == EXPORTED

    @property
    def short_label(self) -> str:
        """A label of at most 15 characters, for rows and columns of tables."""
        return self.short or self.label

    @property
    def optional(self) -> bool:
        """Whether measurements that nest lack it."""
        return self.group in ("gradient", "numerics")

    @property
    def omissible(self) -> bool:
        """Whether tables without a value of it leave out its row."""
        return self.optional or self.conditional


_LOGITS = "Vaswani et al. 2017, arXiv 1706.03762, footnote 4"
_RANDOM_ENERGY = "Derrida 1981, the random-energy model"
_SATURATION = "Zhai et al. 2023, arXiv 2303.06296 (entropy collapse)"
_SINKS = "Xiao et al. 2023, arXiv 2309.17453 (attention sinks)"
_SHANNON = "Shannon 1948, A Mathematical Theory of Communication"
_JACOBIAN = "the derivative of softmax: ∂p_i/∂z_j = p_i(δ_ij − p_j)"
_FORMATS = "IEEE 754; Micikevicius et al. 2022, arXiv 2209.05433 (float8)"
_GRADIENT = "the chain rule: ∂L/∂z = p(A − Σ p A) with A = G Vᵀ, and ∂L/∂q = c Kᵀ ∂L/∂z"

STATISTICS: tuple[Statistic, ...] = (
    Statistic(
        "logit_mean", "logit mean", "logits", "number", "E z",
        "Mean of the logits z = c·q·k over all visible pairs. Softmax ignores it.", _LOGITS,
        rank=11, code="{z}.mean()",
    ),
    Statistic(
        "logit_variance", "logit variance", "logits", "number", "Var z = c² Var(q·k)",
        "Variance of the logits over all visible pairs: d_k for independent unit-variance components without a "
        "scale, 1 with 1/√d_k.", _LOGITS,
        rank=6, code="{z}.var()",
    ),
    Statistic(
        "logit_std", "logit std", "logits", "number", "√Var z",
        "Standard deviation of the logits. Softmax over n keys saturates near √(2 ln n).",
        _RANDOM_ENERGY,
        rank=0, code="{z}.std()",
    ),
    Statistic(
        "logit_excess_kurtosis", "excess kurtosis", "logits", "number", "E(z − E z)⁴ / (Var z)² − 3",
        "How much heavier the tails are than those of a normal distribution; 6/d_k for normal components. The scale "
        "does not change it. Undefined if all logits are equal.",
        "the variance-gamma distribution of a dot product",
        code="(({z} - {z}.mean()) ** 4).mean() / {z}.var() ** 2 - 3",
    ),
    Statistic(
        "logit_min", "smallest logit", "logits", "number", "min z",
        "The smallest visible logit of all draws.", _LOGITS,
        rank=EXPORTED, code="{z}.min()",
    ),
    Statistic(
        "logit_max", "largest logit", "logits", "number", "max z",
        "The largest visible logit of all draws; QK-Clip rescales heads in which it exceeds 100.",
        "Kimi K2 2025, arXiv 2507.20534 (QK-Clip)",
        rank=EXPORTED, code="{z}.max()",
    ),
    Statistic(
        "logit_within_3sd", "inside ±3σ", "logits", "share", "P(|z − E z| ≤ 3 √Var z)",
        "Share of logits within three standard deviations of their mean: 99.73 % for a normal distribution.", _LOGITS,
        rank=EXPORTED, code="(1.0 * (abs({z}) <= 3 * scale * d_k**0.5)).mean()",
    ),
    Statistic(
        "logit_variance_within_row", "variance in row", "logits", "number", message("E Var(z | query)"),
        "Variance of the logits within one query's row, averaged over rows: the only part that affects softmax. It "
        "is the sample's: divided by the n keys of the row, it has (n − 1)/n of the variance of independent logits.",
        "softmax(z + a) = softmax(z)",
        rank=3, code="variance.mean()",
    ),
    Statistic(
        "row_mean_share", "variance softmax ignores", "logits", "share", message("Var(E(z | query)) / Var z"),
        "Share of the logit variance that softmax ignores: it lies between rows and changes no weight. It is the "
        "sample's: the means of rows of n independent logits vary too, with a share of 1/n. Undefined if all logits "
        "are equal.",
        "softmax(z + a) = softmax(z)", short="ignored share", rank=EXPORTED,
    ),
    Statistic(
        "saturation", "σ in row / √(2 ln n)", "logits", "number", "E σ_row/√(2 ln visible keys)",
        "Standard deviation of a row's logits about their own mean over √(2 ln n), at which softmax over its n "
        "visible keys saturates, averaged over the rows that see at least two keys. Short rows spread less than "
        "their law.",
        _RANDOM_ENERGY, short="row saturation",
        rank=1, code="((variance{several} / (2 * {log})) ** 0.5).mean()",
    ),
    Statistic(
        "entropy", "entropy", "attention", "nats", "H = −Σ p ln p",
        "Entropy of a row of attention weights: 0 for one-hot, ln n for uniform.", _SHANNON,
        rank=0, code="entropy.mean()",
    ),
    Statistic(
        "entropy_fraction", "entropy / ln n", "attention", "share", "H / ln(visible keys)",
        "Entropy as a share of its largest possible value. Undefined for a row with one visible key.", _SHANNON,
        rank=5, code="(entropy{several} / {log}).mean()",
    ),
    Statistic(
        "effective_keys", "effective keys", "attention", "keys", "e^H",
        "How many equally weighted keys would have this entropy, averaged over rows.",
        "Hill 1973, diversity of order 1",
        rank=0, code="np.exp(entropy).mean()",
    ),
    Statistic(
        "max_weight", "max weight", "attention", "share", "max p",
        "The largest attention weight of a row.", _SATURATION,
        rank=0, code="p.max(-1).mean()",
    ),
    Statistic(
        "one_hot_rows", "one-hot rows", "attention", "share", f"P(max p > {ONE_HOT})",
        f"Share of rows whose largest weight is above {ONE_HOT}, among those that see at least two keys: attention "
        "reduced to a look-up.",
        _SATURATION,
        rank=0, code=f"(1.0 * (p{{several}}.max(-1) > {ONE_HOT})).mean()",
    ),
    Statistic(
        "sum_squared_weights", "Σ p²", "attention", "number", "Σ p²",
        "Sum of a row's squared weights: 1/n for uniform, 1 for one-hot; its inverse is the participation "
        "number.", "the participation ratio; Hill 1973, diversity of order 2",
        code="(p**2).sum(-1).mean()",
    ),
    Statistic(
        "first_key_weight", "weight on first key", "attention", "share", "p of the first visible key",
        f"Weight on the first key a query sees. A head whose average is above {SINK} is called an attention sink.",
        _SINKS, short="1st-key weight",
        rank=2, code="{first}.mean()",
    ),
    Statistic(
        "first_key_over_uniform", "first key / uniform", "attention", "number", message("E p₁ / E(1/visible keys)"),
        "Weight on the first key over its weight if every row were uniform: 1 if the first key is like any other.",
        _SINKS, short="1st key/uniform", rank=EXPORTED,
    ),
    Statistic(
        "sink_weight", "weight on sink", "attention", "share", "e^sink / Σ e^z",
        "Weight that the sink logit absorbs. Undefined without one.", "transformers, modeling_gpt_oss.py",
        conditional=True,
        code="share.mean()",
    ),
    Statistic(
        "jacobian_norm", "‖J‖_F", "Jacobian", "number", "‖J‖_F, J = diag(p) − p pᵀ",
        "Frobenius norm of the softmax Jacobian of a row, averaged over rows: how much a change of the logits can "
        "change the weights. Zero for one-hot rows.", _JACOBIAN,
        rank=0, code="jacobian.mean()",
    ),
    Statistic(
        "jacobian_norm_squared", "‖J‖_F²", "Jacobian", "number", "Σp² − 2Σp³ + (Σp²)²",
        "Squared norm, averaged over rows.", _JACOBIAN,
        code="(jacobian**2).mean()",
    ),
    Statistic(
        "dead_rows", "dead rows", "Jacobian", "share", f"P(‖J‖_F < {DEAD})",
        f"Share of rows whose Jacobian norm is below {DEAD}, among those that see two keys or more: no gradient "
        "reaches their queries through softmax. Rows of more than 9998 keys are not judged: equal weights on these "
        "have a smaller norm, 1/√n.",
        _JACOBIAN,
        rank=0, code=f"(1.0 * (jacobian{{several}} < {DEAD})).mean()",
    ),
    Statistic(
        "weight_times_complement", "p(1 − p)", "Jacobian", "number", "(1 − Σp²) / visible keys",
        "Diagonal of the Jacobian, averaged over the keys of a row and then over rows.", _JACOBIAN, rank=EXPORTED,
    ),
    Statistic(
        "grad_q_median", "median ∂L/∂q", "gradient", "number", "median over rows of ‖∂L/∂q‖",
        "The gradient of a typical query for L = Σ G·O, with G and the values standard normal and d_v wide; measured "
        "on at most 256 rows of a draw. Unscaled it vanishes as d_k grows.", _GRADIENT,
        rank=4, code="np.quantile(dq, 0.5)",
    ),
    Statistic(
        "grad_q_mean", "mean ∂L/∂q", "gradient", "number", "mean over rows of ‖∂L/∂q‖",
        "The mean over rows; a few near-ties may dominate it.", _GRADIENT,
        code="dq.mean()",
    ),
    Statistic(
        "grad_q_rms", "RMS ∂L/∂q", "gradient", "number", "√(mean of ‖∂L/∂q‖²)",
        "The root mean square over rows. Unscaled it grows with d_k while the median vanishes: ∂L/∂q has the scale c "
        "as a factor, which is then √d_k times as large, and ‖∂L/∂z‖ falls more slowly than that.", _GRADIENT,
        rank=8, code="(dq**2).mean() ** 0.5",
    ),
    Statistic(
        "grad_q_top1_share", "share of the top 1 % of rows", "gradient", "share",
        "Σ‖∂L/∂q‖² of the top 1 % / Σ of all",
        "Share of the total squared gradient that lies in the largest one per cent of rows, their number rounded up.",
        _GRADIENT, short="top 1 % share", rank=10,
    ),
    Statistic(
        "grad_logits_median", "median ∂L/∂z", "gradient", "number", "median over rows of ‖∂L/∂z‖",
        "What softmax passes on to the logits z of a typical row, of the same loss: ∂L/∂q without the factors c and "
        "K of the chain rule.", _GRADIENT,
    ),
    Statistic(
        "grad_logits_rms", "RMS ∂L/∂z", "gradient", "number", "√(mean of ‖∂L/∂z‖²)",
        "The root mean square over rows of what softmax passes on: √(d_v·E‖J‖_F²).", _GRADIENT,
    ),
    Statistic(
        "score_overflow", "overflow", "numerics", "share", "P(|s| rounds beyond the largest number)",
        "Share of scores that become infinite in the number format before anything multiplies them; fused arithmetic "
        "keeps scores in float32. The Lab measures a sample of rows.",
        _FORMATS, rank=7,
    ),
    Statistic(
        "nan_rows", "NaN rows", "numerics", "share", "P(softmax of a row is NaN)",
        "Share of rows without a softmax: it subtracts the largest logit, and ∞ − ∞ is NaN. All other statistics "
        "leave these rows out, and statistics of logits leave out infinite ones.", _FORMATS,
        code="(1.0 * lost).mean()",
    ),
    Statistic(
        "naive_exp_overflow", "e^z overflows unshifted", "numerics", "share", "P(z > ln of the largest number)",
        "Share of logits whose exponential overflows unless the row's largest is subtracted first: above 11.09 in "
        "float16, 88.72 in float32. The Lab measures a sample of rows.", _FORMATS, short="e^z overflows",
        rank=EXPORTED,
    ),
    Statistic(
        "weight_error", "weight error", "numerics", "number", "½ Σ |p − p64|",
        "Total variation distance between the weights in this number format and those in float64: how much weight "
        "was misplaced or lost. The Lab measures a sample of rows.", _FORMATS, rank=9,
    ),
    Statistic(
        "weight_lost", "weight lost", "numerics", "share", "1 − Σp as rounded",
        "How much weight a row loses because small weights are rounded to 0, or to less; below 0 if rounding adds "
        "weight. A sink's share is not lost.",
        "Dao-AILab/flash-attention: the sum of a row is of unrounded weights",
        code="(1 - p.astype(np.float64).sum(-1){share}).mean()",
    ),
)  # fmt: skip

# What the Lab's first view shows, or says in words: its table, sentence, advice, words of status and histograms.
OF_FIRST_VIEW = frozenset(
    {
        "logit_mean", "logit_std", "saturation", "entropy", "entropy_fraction", "effective_keys", "max_weight",
        "one_hot_rows", "first_key_weight", "first_key_over_uniform", "sink_weight", "jacobian_norm", "dead_rows",
        "nan_rows", "weight_lost",
    }
)  # fmt: skip
ALWAYS = tuple(statistic for statistic in STATISTICS if not statistic.omissible)  # in every measurement
STATISTIC: dict[str, Statistic] = {statistic.name: statistic for statistic in STATISTICS}
EVERY = frozenset(STATISTIC)
OF_GRADIENTS = frozenset(statistic.name for statistic in STATISTICS if statistic.group == "gradient")

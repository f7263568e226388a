"""What a bug to be found consists of. This module does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..message import joined, message
from .sources import Reading
from .step import Unit, number_text

Multiplier: TypeAlias = Literal["1", "1/√d_k", "1/d_k", "1/√d_model"]

D_K, D_MODEL = 32, 384  # of the sample, whose queries and keys the captures have
ROOT = D_K**-0.5

# Causes in words, by their names in a diagnosis; those of several faults are joined by +.
CAUSES: dict[str, str] = {
    "healthy": "nothing is wrong",
    "scale-missing": "the scale is missing",
    "scale-twice": "the scale was applied twice",
    "scale-d-model": "√d_model was used instead of √d_k",
    "scale-inverted": "scores were multiplied by √d_k",
    "causal-lost": "the causal mask was lost",
    "future-key": "the causal mask is one key off",
    "gqa-tiled": "query heads read the wrong key heads",
    "softcap-missing": "the soft-cap was dropped",
    "rope-missing": "the rotary embedding is missing",
    "qk-swapped": "queries and keys changed places",
    "softmax-axis": "softmax ran over queries instead of keys",
    "scale-1-over-d": "1/d_k on purpose, as under muP",
    "scale-fixed": "a constant of another width",
    "bias-extra": "a bias that the file does not mention",
    "padding-attended": "padding that was attended to",
    "mask-added": "the mask was added as ones and zeros",
    "scale-d-model+causal-lost": "√d_model was used, and the causal mask was lost",
    "scale-d-model+future-key": "√d_model was used, and the causal mask is one key off",
    "scale-twice+future-key": "the scale was applied twice, and the causal mask is one key off",
    "undecided": "it cannot be known from this file",
}


@dataclass(frozen=True)
class Recipe:
    """How attention is computed from q and k, in plain values."""

    multiplier: Multiplier = "1/√d_k"
    sees: int | None = None  # how many keys after its own a query sees; None: all keys, without a mask
    softcap: float | None = None
    tiled: bool = False  # query head h reads key head h mod kv_heads, instead of h // (heads / kv_heads)
    swapped: bool = False  # q and k changed places
    added: bool = False  # the causal mask is added to the logits, as 1 and 0, and hides nothing


@dataclass(frozen=True)
class Symptom:
    """A figure of weights, by which what was returned is compared with what the file says."""

    label: str
    unit: Unit = "number"


SYMPTOMS: dict[str, Symptom] = {
    "entropy": Symptom("entropy / ln n", "share"),
    "largest": Symptom("largest weight", "share"),
    "later": Symptom("weight on keys after the query's own", "share"),
    "beyond": Symptom("weight on keys after the next one", "share"),
    "slope": Symptom("slope of ln(weight) over q·k"),
    "top": Symptom("that slope, largest scores only"),
    "explained": Symptom("share of ln(weight) explained by q·k", "share"),
}


@dataclass(frozen=True)
class Bug:
    """A capture whose metadata say one computation and whose weights come from another."""

    id: str  # does not give the defect away
    title: str
    story: str  # how it was noticed
    said: Recipe
    done: Recipe
    choices: tuple[str, ...]  # names of CAUSES, in the order in which they are listed
    lesson: str  # what gives it away
    layer: int = 3  # of the sample, whose queries and keys it has
    head: int = 0  # the one to look at
    heads: int = 4
    kv_heads: int = 4
    d_model: int = D_MODEL  # as the file has it

    def multiplier(self, of: Recipe) -> float:
        """Return the number that a recipe multiplies q·k by."""
        named = {"1": 1.0, "1/√d_k": ROOT, "1/d_k": 1 / D_K, "1/√d_model": self.d_model**-0.5}
        return named[of.multiplier]


@dataclass(frozen=True, eq=False)
class BugEvidence:
    """The symptoms of a bug, each as returned (measured) and as the file says (exact), and the diagnosis."""

    symptoms: Mapping[str, Reading]
    cause: str  # a name of CAUSES; "undecided" if another of the choices explains the weights as well
    also: tuple[str, ...]  # causes that explain the weights as well
    says: str  # the diagnosis in words


def facts(bug: Bug) -> str:
    """Return what the file says, in one sentence, with the numbers to compare a slope with."""
    said = bug.said
    heads = message("{heads} heads", heads=bug.heads)
    if bug.kv_heads < bug.heads:
        heads = message("{heads} query and {kv_heads} key heads", heads=bug.heads, kv_heads=bug.kv_heads)
    softcap = message("no soft-cap")
    if said.softcap is not None:
        softcap = message("a soft-cap of {softcap}", softcap=number_text(said.softcap))
    words = [
        heads,
        f"d_k {D_K}",
        message("multiplier 1/√d_k = {root}", root=number_text(ROOT, digits=4)),
        message("no mask") if said.sees is None else message("a causal mask"),
        softcap,
    ]
    return message(
        "The file says: {words}. (1/d_k = {inverse}, 1/√d_model = {by_model}.)",
        words=joined(words, ", "),
        inverse=number_text(1 / D_K, digits=4),
        by_model=number_text(bug.d_model**-0.5, digits=4),
    )


_PLAIN = Recipe()
_CAUSAL = Recipe(sees=0)
_SCALES = ("scale-missing", "scale-twice", "scale-d-model", "scale-inverted", "causal-lost", "healthy")
_MASKS = ("scale-missing", "causal-lost", "future-key", "mask-added", "softcap-missing", "healthy")
_MIXED = ("scale-twice", "causal-lost", "future-key", "gqa-tiled", "softcap-missing", "healthy")
_SEVERAL = ("scale-d-model", "causal-lost", "future-key", "scale-d-model+causal-lost", "scale-d-model+future-key",
            "scale-twice+future-key")  # fmt: skip
_DOUBTFUL = ("scale-missing", "scale-twice", "scale-d-model", "scale-1-over-d", "healthy", "undecided")

BUGS: tuple[Bug, ...] = (
    Bug(
        "port",
        "A port to another framework",
        "Since the port every layer attends to single words, and the model's text repeats itself.",
        _PLAIN,
        Recipe("1"),
        _SCALES,
        "The weights are far sharper than they should be, and ln(weight) rises by 1 for each unit of q·k. That "
        "slope is the multiplier.",
    ),
    Bug(
        "fused",
        "A faster kernel",
        "A fused kernel was switched on. The loss rose, and attention maps look washed out.",
        _PLAIN,
        Recipe("1/d_k"),
        _SCALES,
        "The slope of ln(weight) is 1/d_k, the square of 1/√d_k: the queries were scaled, and the kernel scaled "
        "again. A model that follows muP has the same number, and is right.",
        layer=2,
        head=1,
    ),
    Bug(
        "decoder",
        "A loss too good to be true",
        "A language model reaches a loss that nobody believes, and writes nonsense.",
        _CAUSAL,
        _PLAIN,
        _MIXED,
        "Weight lies on keys after the query, also far after it: the model reads what it is to predict. Its "
        "multiplier is right.",
        head=2,
    ),
    Bug(
        "tutorial",
        "Straight from a tutorial",
        "A small model was written line by line from a tutorial. It trains, but more slowly than its sibling.",
        _PLAIN,
        Recipe("1/√d_model"),
        _SCALES,
        "The slope of ln(weight) is 1/√d_model. The weights are flatter than expected, not sharper: that tells it "
        "from a scale that is missing.",
        layer=1,
        head=3,
    ),
    Bug(
        "sharp",
        "One key takes all",
        "A head gives nearly all the weight of every row to one key. A colleague says that the scale must be "
        "missing.",
        _PLAIN,
        _PLAIN,
        _SCALES,
        "What was returned is what the file says. Training made this head sharp: its queries and keys are long and "
        "aligned. Sharpness alone is no evidence of a bug.",
        layer=0,
        head=2,
    ),
    Bug(
        "grouped",
        "Grouped queries",
        "A checkpoint with grouped queries was loaded by another program. It answers every prompt with noise.",
        _PLAIN,
        Recipe(tiled=True),
        _MIXED,
        "ln(weight) has next to nothing to do with q·k as stored, whatever the multiplier: the weights were made "
        "from other keys. Each key head must be repeated for the query heads of its group, not tiled.",
        head=1,
        kv_heads=2,
    ),
    Bug(
        "by-hand",
        "A mask written by hand",
        "A causal mask was rewritten for speed. Since then the loss is a little too good.",
        _CAUSAL,
        Recipe(sees=1),
        _MIXED,
        "There is weight on later keys, but none after the very next one: the mask is off by one. Without a mask, "
        "weight would lie further away, too.",
        layer=2,
        head=3,
    ),
    Bug(
        "served",
        "Trained here, served there",
        "A model answers well where it was trained. Another server, with another kernel, gives slightly other "
        "answers.",
        Recipe(softcap=4.0),
        _PLAIN,
        _MIXED,
        "The slope of ln(weight) is the same among the largest scores as among all. Under a soft-cap it would be "
        "smaller there: c·tanh(z/c) bends large logits.",
        layer=1,
    ),
    Bug(
        "booleans",
        "True and False",
        "A causal mask of True and False is passed to attention in a new framework. Nothing complains, and the loss "
        "is too good.",
        _CAUSAL,
        Recipe(added=True),
        _MASKS,
        "There is weight on later keys, but less than on earlier ones of the same score: e times less. True and "
        "False were added to the logits as 1 and 0. Only −∞ hides a key.",
        layer=1,
        head=2,
    ),
    Bug(
        "rewrite",
        "A decoder, rewritten from a paper",
        "A decoder was rewritten from its paper. Its loss is a little too good, and its attention maps look "
        "washed out.",
        _CAUSAL,
        Recipe("1/√d_model", sees=1),
        _SEVERAL,
        "Each symptom has its own cause. The slope of ln(weight) is 1/√d_model, whatever the mask; weight on the "
        "next key, and none after it, is a mask one key off, whatever the scale. A diagnosis does not stop at the "
        "first fault.",
        layer=2,
        head=1,
    ),
    Bug(
        "quarrel",
        "A quarrel over a slope",
        "Attention maps look washed out. One engineer says that the scale was applied twice, another that √d_model "
        "was used.",
        _PLAIN,
        Recipe("1/d_k"),
        _DOUBTFUL,
        "Both have the same number: with d_model = d_k², 1/√d_model is 1/d_k, and the same weights follow. What to "
        "mend is known, not how it came about: the code, or a head of another width, would tell.",
        layer=3,
        head=3,
        d_model=D_K**2,
    ),
)

"""What the library asks of captured heads: their scale, where two captures differ, and whether limits hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, SupportsFloat, cast, overload

from ..captures.calls.call import call, opened_calls
from ..captures.head import CaptureFile
from ..diagnosis.configuration import Configuration, configuration_of
from ..diagnosis.disagreement import with_disagreements
from ..diagnosis.limits import LIMITS, limit
from ..errors import InputError
from ..message import message
from ..questions.captures.check import CheckCaptures
from ..questions.captures.compare import CompareCaptures
from ..questions.captures.diagnose import DiagnoseCaptures
from .captures import Source, file_of
from .result import known_name, own_number
from .verdicts import Check, Diagnosis, Differences

_AXES = {4: "batch,head,token,d_k", 3: "head,token,d_k", 2: "token,d_k"}
_EXCHANGED = {4: "batch,token,head,d_k", 3: "token,head,d_k"}


@overload
def diagnose(
    source: Source | Mapping[str, Any],
    /,
    *,
    expect: str | SupportsFloat | None = None,
    config: Mapping[str, Any] | None = None,
) -> Diagnosis: ...
@overload
def diagnose(
    q: Any,
    k: Any,
    v: Any = None,
    o: Any = None,
    *,
    lse: Any = None,
    weights: Any = None,
    causal: bool | Literal["top-left", "bottom-right"] | None = None,
    mask: Any = None,
    scale: Any = None,
    axes: str | None = None,
    expect: str | SupportsFloat | None = None,
    config: Mapping[str, Any] | None = None,
    **said: Any,
) -> Diagnosis: ...
def diagnose(
    q: Any, k: Any = None, v: Any = None, o: Any = None, *,
    expect: str | SupportsFloat | None = None, config: Mapping[str, Any] | None = None, **said: Any,
) -> Diagnosis:  # fmt: skip
    """Find out which multiplier each head really used, as `attn-tui diagnose` does.

    Of a file, a folder, a capture or calls of `attn_tui.call`, or of arrays of NumPy, PyTorch, JAX or anything that
    NumPy reads: q and k, and as evidence v and o, lse or weights. All that `attn_tui.call` takes may be said of them:

    causal:  whether later keys are hidden; if that is not said and the evidence shows it, a note says so
    mask:    True is visible; or numbers that are added to logits
    scale:   the multiplier that the program says it used
    axes:    the order of the axes of q, k, v and o, by default "batch,head,token,d_k"
    expect:  what is intended: a rule, a number or a formula of d
    config:  the model's configuration, instead of the file's

    Raise InputError if one of them is not accepted or a head cannot be read, and if the arrays are explained only
    with heads and tokens exchanged.
    """
    if isinstance(q, Mapping):
        arrays = {**cast("Mapping[str, Any]", q)}
        return diagnose(arrays.pop("q", None), arrays.pop("k", None), expect=expect, config=config, **arrays, **said)
    if k is None:
        if said or not (v is None and o is None) or hasattr(q, "shape") or q is None:
            raise InputError("must be given q and k; or a file, a capture or calls, which say everything themselves")
        return _judged(file_of(q), expect, config)
    rank = getattr(q, "ndim", 4)
    axes = said.pop("axes", None)
    arrays = {"q": q, "k": k, "v": v, "o": o, **said}
    if axes is not None or rank not in _EXCHANGED:
        return _of_arrays(arrays, axes or _AXES.get(rank, _AXES[4]), expect, config)
    refused: InputError | None = None
    diagnosis: Diagnosis | None = None
    try:
        diagnosis = _of_arrays(arrays, _AXES[rank], expect, config)
    except InputError as error:
        refused = error
    if diagnosis is None or 2 * _unexplained(diagnosis) > len(diagnosis):
        try:
            other = _of_arrays(arrays, _EXCHANGED[rank], expect, config)
        except InputError:
            pass
        else:
            explained = sum(head.verdict.word in ("healthy", "cause") for head in other)
            if not _unexplained(other) and 2 * explained > len(other):
                raise InputError(
                    "axes: the arrays agree with each other only as {other}, not as {usual}; give axes={other!r}",
                    other=_EXCHANGED[rank], usual=_AXES[rank],
                )  # fmt: skip
    if diagnosis is None:
        assert refused is not None
        raise refused
    return diagnosis


def _of_arrays(
    arrays: Mapping[str, Any], axes: str, expect: str | SupportsFloat | None, config: Mapping[str, Any] | None
) -> Diagnosis:
    """Return the verdicts on arrays with these axes; as causal, if only the evidence says that they are."""

    def opened(causal: Any) -> CaptureFile:
        said: dict[str, Any] = {"scale": None, **arrays, "axes": axes, "causal": causal}
        return opened_calls([call(**said)], config)

    if arrays.get("causal") is not None:
        return _judged(opened(arrays["causal"]), expect, config)
    file = opened(False)
    judged = _judged(file, expect, config)
    square = file.layers[0].queries == file.layers[0].keys
    if not all(
        (head.verdict.word == "unexplained" and not square)
        or any(one.cause == "causal-extra" for one in head.verdict.findings)
        for head in judged
    ):
        return judged
    file = opened(True if square else "bottom-right")
    note = message("causal was not given; no query sees later keys, so attention is taken as causal")
    as_causal = _judged(replace(file, notes=(note, *file.notes)), expect, config)
    return judged if _unexplained(as_causal) else as_causal


def _unexplained(heads: Diagnosis) -> int:
    return sum(head.verdict.word == "unexplained" for head in heads)


def _judged(file: CaptureFile, expect: str | SupportsFloat | None, config: Mapping[str, Any] | None) -> Diagnosis:
    question = DiagnoseCaptures(paths=(file.path,), opened=(file,), expect=own_number(expect), given=_given(config))
    return Diagnosis(file, question.answer())


def _given(config: Mapping[str, Any] | None) -> Configuration | None:
    return None if config is None else configuration_of(config, "config")


def compare(reference: Source, test: Source) -> Differences:
    """Compare two captures stage by stage, as `attn-tui compare` does; raise InputError if one cannot be read.

    Each is a file, a folder, a capture or calls of `attn_tui.call`.
    """
    one, other = file_of(reference), file_of(test)
    question = CompareCaptures(reference=one.path, test=other.path, opened=(one, other))
    return Differences(one, other, question.answer())


def check(
    source: Source,
    *,
    expect: str | SupportsFloat | None = None,
    strict: bool = False,
    config: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    **limits: SupportsFloat,
) -> Check:
    """Check a capture against limits and against the expected scale, as `attn-tui check` does.

    `limits` are those of the command: max_logit, min_spread, …; `allow` are patterns such as "*:max-logit". Raise
    InputError if one is not accepted or a head cannot be read.
    """
    file = file_of(source)
    given_limits = {known_name(name, LIMITS): limit(own_number(value), name) for name, value in limits.items()}
    own = _given(config)
    question = CheckCaptures(
        paths=(file.path,),
        opened=(with_disagreements(file, own),),
        expect=own_number(expect),
        given=own,
        allow=tuple(allow),
    )
    [checked] = replace(question, **given_limits).answer()
    return Check(checked, strict)

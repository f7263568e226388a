"""What was seen and what was missed, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .options import Options, earlier_file

if TYPE_CHECKING:
    from .session import Session


def summary(session: Session, skipped: Mapping[str, int]) -> str:
    """Return what a recording saw and missed, one line each."""
    lines = [_recorded(session) if session.folder.written else with_earlier(_nothing(session), session.options)]
    missed = {why: f"{_times(count, 'call')}: " if count else "" for why, count in session.missed.items()}
    lines += [f"not recorded: {count}{why}" for why, count in missed.items()]
    lines += [f"not recorded: {_times(count, 'pass', 'passes')} {why}" for why, count in skipped.items()]
    lines += session.refused
    if session.unfit:
        limit = session.options.max_bytes
        lines.append(f"not recorded: {_times(session.unfit, 'call')}: a file has at most {limit:,} bytes (max_bytes)")
    if session.step == 0 and session.calls_between > 1 and not session.options.one_file:
        lines.append("all calls are one step: no optimizer took a step, and no module was called twice")
    if session.ended:
        lines.append(f"the recorded step ended where {session.ended}; with every=1, each call is a step")
    doubtful = [layer.site.name for layer in session.layers if not layer.exact]
    if doubtful:
        lines.append(f"multiplier unknown, as scale · q·k does not explain the logits: {_some(doubtful)}")
    return "\n".join(lines)


def with_earlier(why: str, options: Options) -> str:
    """Return why nothing was recorded, and that the file of an earlier recording is unchanged."""
    file = earlier_file(options)
    return why if file is None else f"{why}; {file} was there before and is unchanged"


def _recorded(session: Session) -> str:
    written = session.folder.written
    size = sum(_size(path) for path in written)
    layers = session.recorded
    what = f"{_times(session.seen, 'attention call')} seen, {layers} recorded"
    if len(written) == 1:
        return f"{written[0]}: {what}, {_bytes(size)}"
    return f"{written[0].parent}: {len(written)} files, {_bytes(size)}; in the newest step {what}"


def _nothing(session: Session) -> str:
    if not session.passes and not session.calls:
        where = "of a module" if session.places.given is None else "of the given model, or inside it,"
        return (
            f"nothing recorded: no forward pass {where} was seen; to record what functions compute, call them inside "
            "`with attn_tui.record(None, FILE):`"
        )
    if session.unwanted and not session.missed:
        seen = _some([*session.unwanted])
        return f"nothing recorded: {session.options.layers!r} fits no layer; those with attention are {seen}"
    if session.calls:
        return f"nothing recorded: {_times(session.calls, 'attention call')} seen, none that could be recorded"
    return (
        f"nothing recorded: {_times(session.passes, 'forward pass', 'forward passes')} seen, with "
        f"{_times(session.operations, 'operation')}, and no softmax of a product among them"
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size = size / 1000
    return f"{size:.3g} GB"


def _times(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

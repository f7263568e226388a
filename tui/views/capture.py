"""What a capture and its selected head are, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .glyphs import Glyphs
from .lines import Line, wrapped
from .numbers import short

if TYPE_CHECKING:
    from ...core.captures.reader import Capture, Layer


def capture_lines(capture: Capture, layer: Layer, head: int, width: int, glyphs: Glyphs) -> list[Line]:
    """The selected head first, then the file; everything that had to be assumed last."""
    lines: list[Line] = [((f"layer {layer.index}", "accent"), (glyphs.say(" · "), "dim"), (f"head {head}", "accent"))]
    lines += wrapped(glyphs.say(layer_facts(layer, glyphs)), width)
    lines.append(())
    lines += wrapped(glyphs.say(capture.model or capture.path.name), width, "label")
    if capture.model:
        lines += wrapped(glyphs.say(capture.path.name), width, "dim")
    for note in capture.notes:
        lines += wrapped(glyphs.say(note), width, "dim")
    return lines


def layer_facts(layer: Layer, glyphs: Glyphs) -> str:
    """`d_k 32, 70 queries × 70 keys, float16, × 0.177, causal`."""
    facts = [f"d_k {layer.d_k}", f"{layer.queries} queries × {layer.keys} keys", layer.dtype]
    if layer.batch > 1:
        facts.insert(1, f"{layer.batch} texts")
    if layer.kv_heads != layer.heads:
        facts.append(f"{layer.heads} heads read {layer.kv_heads} key heads")
    facts.append(f"scale × {short(layer.scale, glyphs)}" if layer.scale is not None else "scale not said")
    if layer.softcap is not None:
        facts.append(f"soft-cap {short(layer.softcap, glyphs)}")
    if layer.causal is not None:
        facts.append("causal" if layer.queries == layer.keys else f"causal, {layer.causal.replace('_', ' ')}")
    if layer.mask is not None:
        facts.append("padding mask")
    return ", ".join(facts)

"""Copies in main memory of what is recorded, which a GPU makes while the program goes on."""

from __future__ import annotations

from typing import Protocol

import torch


class CopyEvent(Protocol):
    """Something that happens once all copies that were begun before are complete."""

    def synchronize(self) -> None:
        """Wait until it has happened."""


class _NoWait:
    def synchronize(self) -> None:
        pass


DONE: CopyEvent = _NoWait()  # of copies that were complete when they returned


def kept(tensor: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy in main memory; of a tensor on a CUDA device, complete after the next event there.

    The copy is in the order of the program's stream: what the program changes afterwards does not reach it.
    """
    tensor = tensor.detach()
    if tensor.device.type == "cuda":
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return copy.copy_(tensor, non_blocking=True)
    if tensor.device.type != "cpu":
        return tensor.cpu().contiguous()
    return tensor.clone(memory_format=torch.contiguous_format)


def copied(device: torch.device) -> CopyEvent:
    """Return the event after the copies from a device that were begun so far."""
    if device.type != "cuda":
        return DONE
    event = torch.cuda.Event(blocking=True)
    event.record(torch.cuda.current_stream(device))
    return event

"""The recorder: waits for forward passes through hooks, decides which are recorded, and takes its hooks out again.

A pass is that of an outermost module, of the given model or inside it. A step is a step of an optimizer, once one was
made; until then, it ends when a module with attention is called again. Modules called one after another belong to the
same step, and so do the passes of a generation whose cache of keys grows.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from inspect import currentframe
from typing import Any
from weakref import WeakSet

import torch
from torch.nn.modules import module as modules

from .exporters import Exporters
from .files.folder import rank_and_size
from .layers.kinds import is_symbolic
from .options import Options
from .session import Session
from .summary import summary
from .switches import RECOMPUTED, TRACED, Switches, after_optimizer_steps, why_not

_FRAMES = 100  # of the recorder, above the deepest ones of the program
_PATIENCE = 100  # steps without attention after which one file is given up
_RUNNING: WeakSet[Recorder] = WeakSet()  # to be told of forks, whose hooks cannot be removed
os.register_at_fork(after_in_child=lambda: [session.forked() for session in _RUNNING])


class Recorder:
    """Records a program, or one model of it. As a context manager, it stops at the end of the block."""

    def __init__(
        self,
        options: Options,
        model: torch.nn.Module | None = None,
        report: Callable[[Recorder], None] | None = None,
        whole: bool = False,
    ) -> None:
        self.options = options
        self.session = Session(options, self._advance, model, whole)
        self._only = threading.get_ident() if whole else None  # thread that is recorded
        self.skipped: Counter[str] = Counter()  # passes that could not be recorded, by reason
        self._report = report
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._thread: int | None = None  # that records
        self._frame: Any = None  # of the outermost call
        self._hooks: list[Any] = []
        self._counting: list[Any] = []  # hooks that count passes between recorded steps
        self._awaited: torch.nn.Module | None = None  # module whose pass begins the step; None: any
        self._recursion: tuple[int, int] = (0, 0)  # the program's limit, and the extended one
        self._optimizers: set[int] = set()  # that made the present step
        self._optimizer_steps = 0
        self._optimizer_hook: Any = None
        self._switches = Switches(self.session.stop_waiting, self.session.paused)
        self._exporters = Exporters(self._pause)
        self._newest = -1  # step that was recorded
        self._closed = False

    # beginning and end

    def start(self) -> Recorder:
        """Wait for the first pass; without a model, for whatever this thread computes."""
        atexit.register(self.close)
        _RUNNING.add(self)
        self._optimizer_hook = after_optimizer_steps(self._optimizer_stepped)
        self._arm()
        return self

    def forked(self) -> None:
        """In a forked process, start over; if a recording is in progress, leave it to the parent."""
        self._lock = threading.Lock()
        if self.session.layers or self.session.recording or self._only is not None:
            self._closed = True
        else:
            self._process = os.getpid()
        self.session.abandon()

    def close(self) -> None:
        """Stop, write what is not written yet, and report."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        try:
            if self.session.recording:
                self._end()
            self.session.stop()
            self.session.leave()
            self.session.finish()
        except BaseException as error:  # the program goes on, or ends in its own way
            self.session.failed(error)
        self._disarm()
        if self._optimizer_hook is not None:
            self._optimizer_hook.remove()
        atexit.unregister(self.close)
        _RUNNING.discard(self)
        if self._report is not None:
            self._report(self)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def files(self) -> list[str]:
        """The files written, the oldest first."""
        self.session.await_writer()
        return [str(path) for path in self.session.folder.written]

    @property
    def complete(self) -> bool:
        """Whether something was recorded and nothing missed."""
        session = self.session
        session.await_writer()
        left_out = (session.missed, session.refused, session.unfit, self.skipped)
        return bool(session.folder.written) and not any(left_out)

    @property
    def summary(self) -> str:
        """What was seen and what was missed, one line each."""
        self.session.await_writer()
        return summary(self.session, self.skipped)

    # hooks

    def _arm(self, awaited: torch.nn.Module | None = None) -> None:
        """Wait for a pass, of this module if one is given."""
        self._stop_counting()
        self._awaited = awaited
        if not self._hooks:
            self._hooks = [
                modules.register_module_forward_pre_hook(self._before),
                modules.register_module_forward_hook(self._after, always_call=True),
            ]
            self._exporters.start()
        self._switches.force_eager()
        self._listen()

    def _listen(self) -> None:
        """Wait for attention outside modules, too."""
        if self._hooks and self._awaited is None and self._is_of_run():
            self.session.listen()

    def _disarm(self) -> None:
        """Let the program run as if there were no recorder."""
        self._exporters.stop()
        self.session.stop()
        self._take_out()

    def _take_out(self) -> None:
        """Take hooks and switches out of PyTorch."""
        self._stop_counting()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._switches.restore()

    @contextmanager
    def _pause(self, traced: object = None) -> Generator[None]:
        """Take hooks and switches out for a while, and note once that a module is traced meanwhile."""
        is_armed, is_counting = bool(self._hooks), bool(self._counting)
        if is_armed and isinstance(traced, torch.nn.Module) and self.session.places.includes(traced):
            self.skipped[TRACED] += 1
        self._take_out()
        try:
            with self.session.paused():
                yield
        finally:
            if is_armed and not self._closed:
                self._arm(self._awaited)
            elif is_counting and not self._closed:
                self._start_counting()

    def _start_counting(self) -> None:
        """Count passes, through hooks that copies and files of the model do not have."""
        if self.session.root is not None and not self._optimizers:
            self._counting.append(modules.register_module_forward_hook(self._count))
            self._switches.hide_hooks()
            self._exporters.start()

    def _stop_counting(self) -> None:
        for hook in self._counting:
            hook.remove()
        self._counting.clear()

    def _before(self, module: torch.nn.Module, inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        own = currentframe()
        try:
            if self.session.left:
                self.session.leave()
            with torch._C.DisableTorchFunction():  # modes of the program see none of this
                self._enter(module, inputs, own and own.f_back)
                if self._thread == threading.get_ident():
                    self._extend_recursion(len(self.session.places.stack) + _FRAMES)
        except Exception as error:
            self.session.failed(error)

    def _after(self, module: torch.nn.Module, _: Any, out: Any) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            places = self.session.places
            places.other = None if places.other is module else places.other
            with torch._C.DisableTorchFunction():
                finished = out is not None and not is_symbolic(out)
                if self._thread == threading.get_ident() and self.session.places.leave(module, finished):
                    self._end(failed=out is None and sys.exc_info()[0] is not None)
        except Exception as error:
            self.session.failed(error)

    # passes

    def _enter(self, module: torch.nn.Module, inputs: Any, frame: Any) -> None:
        if self._closed or self._only not in (None, threading.get_ident()):
            return
        if self._thread == threading.get_ident():
            if self._is_running(frame):
                self.session.places.enter(module, inputs)
                return
            self._end()  # an exception that hooks do not see ended the pass, such as Ctrl-C
        if self._awaited is not None and self._awaited is not module:
            return
        places = self.session.places
        if not places.includes(module):
            places.other = module if places.other is None else places.other
            return
        if not self._lock.acquire(blocking=False):
            return  # another thread records
        try:
            if (reason := why_not(module)) is not None:
                self._skip(module, frame, reason)
            elif self._is_asked_for(module):
                self._begin(module, inputs, frame)
        finally:
            if self._thread is None and self._lock.locked():
                self._lock.release()

    def _skip(self, module: torch.nn.Module, frame: Any, reason: str) -> None:
        """Let a pass run unseen, with all modules inside."""
        if reason != RECOMPUTED or not self.session.passes:  # else it was seen before the backward pass
            self.skipped[reason] += 1
        self._thread, self._frame = threading.get_ident(), frame
        if why_not() is None:  # else no operation is followed, and nothing may be computed here
            self.session.stop()
        self.session.places.enter(module, real=False)

    def _extend_recursion(self, frames: int) -> None:
        """Let the program have frames beyond its limit: modules with hooks are called through one function more."""
        limit, extended = self._recursion
        if (current := sys.getrecursionlimit()) != extended:  # the program has set it
            limit = current
        self._recursion = limit, limit + frames
        sys.setrecursionlimit(limit + frames)

    def _is_running(self, frame: Any) -> bool:
        """Return whether the outermost call is on the stack above this frame."""
        if self._frame is None:
            return True
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None

    def _is_asked_for(self, module: torch.nn.Module) -> bool:
        """Return whether to record the pass that begins; it may end the step in progress."""
        session = self.session
        if not self._is_of_run():
            self._report = None
            self.close()
            return False
        if self.session.endless or not session.repeats(module):
            return True
        if session.layers and session.attends(module) and not torch.is_grad_enabled():
            return True  # it may continue a generation; its first layer tells
        if self._optimizers and session.layers:
            self._disarm()  # a further micro-batch; the optimizer ends the step
            return False
        return self._advance(session.step + 1)

    def _is_of_run(self) -> bool:
        """Return whether this process of a distributed run is recorded."""
        return self.options.ranks == "all" or rank_and_size()[0] == 0

    def _begin(self, module: torch.nn.Module, inputs: Any, frame: Any) -> None:
        self._thread, self._frame, self._awaited = threading.get_ident(), frame, None
        self._newest = max(self._newest, self.session.step)
        self._switches.slow_paths()
        self.session.begin_pass(module, inputs)

    def _end(self, failed: bool = True) -> None:
        """End the pass that is recorded, or one that is not; `failed`: by an error."""
        self._thread = None
        self._frame = None
        recorded = self.session.recording
        try:
            if recorded:
                self.session.end_pass(failed)
            self.session.places.clear()
        finally:
            self._switches.fast_paths()
            self._extend_recursion(0)
            if self._lock.locked():
                self._lock.release()
        if recorded and self.session.skips_rest:
            self._after_step()
            self._count(self.session.root)
        else:
            self._listen()

    # steps

    def _advance(self, step: int) -> bool:
        """End the step in progress and begin another one; return whether that is recorded."""
        session = self.session
        if not session.recording:
            session.stop()
        session.finish_step()
        if self._is_finished():
            session.note_end(not self._optimizers)
            self._after_step()
            return False
        asked = self.options.one_file or self._is_due(step)
        session.new_step(step, asked)
        if self.options.one_file and step > _PATIENCE:
            self.close()
            return False
        if not asked and session.generates and not self._optimizers:
            return True  # only what is recorded tells where a generation ends
        if not asked:
            self._after_step()
        return asked

    def _after_step(self) -> None:
        """Go to rest after a step that was recorded. In the middle of a pass, wait for its end."""
        if self.session.recording:
            self.session.stop_listening()
            return
        if self._is_finished():
            self.close()
            return
        self._disarm()
        self._start_counting()

    def _is_finished(self) -> bool:
        files = len(self.session.steps_written)
        return files >= (1 if self.options.one_file else self.options.max_steps or files + 1)

    def _is_due(self, step: int) -> bool:
        every = self.options.every
        return every is not None and step % every == 0 and step > self._newest

    def _count(self, module: torch.nn.Module | None, *_: Any) -> None:
        """Between recorded steps, note that a pass of the outermost module ended; arm if the next is asked for."""
        if torch.compiler.is_compiling() or module is not self.session.root or not self._counting:
            return
        if torch._C._current_graph_task_id() != -1:
            return
        step = self.session.step + 1
        if self._is_due(step):
            self.session.new_step(step)
            self._arm(module)
        else:
            self.session.step = step

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        """From the first step of an optimizer on, steps are counted instead of passes."""
        if torch.compiler.is_compiling() or self._closed or self.session.endless or self.session.recording:
            return
        try:
            if self._optimizers and id(optimizer) not in self._optimizers:  # another one made this step
                self._optimizers.add(id(optimizer))
                return
            self._optimizers = {id(optimizer)}
            self._optimizer_steps += 1
            if self._optimizer_steps != self.session.step and self._advance(self._optimizer_steps):
                self._arm()
        except Exception as error:
            self.session.failed(error)

"""A recording: the layers of a step, and when its file is written."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from traceback import extract_tb, walk_tb

import torch

from .files.document import Budget, contents, layer_number
from .files.folder import Folder
from .layers.cache import continued
from .layers.eager import RecordingLimits
from .layers.kinds import parameters_of
from .layers.layer import Call, RecordedLayer, Site
from .options import Options, wanted_layer
from .places import Places, program_of
from .trace.mode import RecordingMode, put, take, unseen
from .trace.tracer import Listener, Tracer

_SHARE = 10  # writing a file again and again takes at most one tenth of the time
_ROOM = 512 << 20  # bytes of a GPU that must be free: twice what the work on a layer takes beside its copies
_TRIALS = 64  # passes in which a framework may try a model
_MOST_BETWEEN = 100  # calls outside modules that are recorded: nothing tells where a step of them ends
_PATIENCE = 2.0  # seconds into a pass after which a first part of it is written, unless there is an earlier file


class Session:
    """Collects the layers of a step and has a thread write its file. One thread of the program at a time uses it.

    `advance` ends the step when a pass turns out not to continue it, and says whether the next one is recorded.
    """

    def __init__(
        self,
        options: Options,
        advance: Callable[[int], bool],
        model: torch.nn.Module | None = None,
        whole: bool = False,
    ) -> None:
        self.options = options
        self.folder = Folder(options)
        self.places = Places(self._unseen, model)
        self.passes = 0
        self.operations = 0
        self._calls: Counter[int] = Counter()  # of attention, in this step, by outermost module
        self.unwanted: dict[str, None] = {}  # the layers that were not asked for, in order
        self.seen = self.recorded = 0  # calls in the step of the newest file, and those in the file
        self.unfit = 0  # calls that do not fit into that file
        self.missed: Counter[str] = Counter()
        self._refused: defaultdict[str, Counter[Call]] = defaultdict(Counter)  # calls not kept, by reason
        self.layers: list[RecordedLayer] = []
        self.step = 0
        self.steps_written: set[int] = set()
        self.root: torch.nn.Module | None = None  # the first outermost module of the step, if possible with attention
        self._advance = advance
        self._roots: list[int] = []  # outermost modules of the step with attention
        self._outermost: torch.nn.Module | None = None  # module of this pass
        self._begun = False  # whether the step had a pass
        self._next: torch.nn.Module | None = None  # outermost module that may begin another step
        self.ended = ""  # where the only step ended, if a method that the program called was not at its end
        recipe = RecordingLimits(options.rows, options.batch, options.values)
        listener = Listener(self.places.modules, self.places.site, self._wanted, self._take, self._miss)
        self._tracer = Tracer(recipe, listener)
        self._mode: RecordingMode | None = None
        self.left: list[RecordingMode] = []  # modes that other threads have to take off
        self.skips_rest = False  # whether the rest of this pass is not recorded
        self._whole = whole  # whether passes and what is between them are recorded, wherever attention is seen
        self.calls_between = 0  # of attention, outside modules in this step
        self._budget = Budget(options.max_bytes, options.rows)
        self._in_pass: list[str] = []  # names of the calls of this pass
        self._taken: Counter[Call] = Counter()  # calls of this step, also those that do not fit into the file
        self._turn = 0  # of calls in this pass
        self._after_trial = False  # the passes before only tried the model, or failed
        self._failed = False  # the last pass ended by an error
        self.due = True  # whether the step is recorded, or its passes are only told apart
        self.generates = False  # whether passes continued others
        self._first: Site | None = None  # of this pass, if it is not asked for
        self._continues = False  # this pass may continue the last one with a longer cache
        self._changed = False  # since the file was written
        self._in_part = False  # the file lacks layers of this pass
        self._began = self._wrote = -1e9
        self._writing_took = 0.0
        self._writer: threading.Thread | None = None  # that writes a file while the program goes on

    # passes

    @property
    def recording(self) -> bool:
        """Whether a pass is being recorded."""
        return self._outermost is not None

    @property
    def calls(self) -> int:
        """The calls of attention in this step."""
        return self._calls.total()

    @property
    def endless(self) -> bool:
        """Whether everything until the end belongs to one step."""
        return self._whole and self.options.one_file

    def repeats(self, module: torch.nn.Module) -> bool:
        """Return whether a pass of this module begins another step.

        Modules without attention, such as an activation function, may be called again and again in a step.
        """
        self._next = module
        if self._is_trial():
            return False
        return self.attends(module) or (self._begun and not self._roots and module is self.root)

    def attends(self, module: torch.nn.Module) -> bool:
        """Return whether attention was seen in this outermost module in this step."""
        return id(module) in self._roots

    def begin_pass(self, module: torch.nn.Module, inputs: object = ()) -> None:
        """Record the pass of an outermost module."""
        self.passes += 1
        self._in_pass.clear()
        self._turn = 0
        self.skips_rest = False
        self._after_trial = self._is_trial()
        self._began = time.monotonic()
        if not self._begun and not self._roots:
            self.root = module
        self._outermost, self._begun = module, True
        self._continues = self.attends(module) and not self.endless
        self.places.enter(module, inputs)
        if self._mode is not None and not self._mode.follows():
            self.stop()
        with self.paused():  # PyTorch forgets a mode at the end of a compiled function that began without
            mode = self._mode
        mode = mode or self._start()
        mode.between = False
        self._tracer.know(parameters_of(module))

    def end_pass(self, failed: bool) -> None:
        """Wait for attention outside modules, and write what was recorded, unless that takes too long each time."""
        self.places.clear()
        module, self._outermost = self._outermost, None
        self._failed = failed
        if module is not None and self.places.attended and not self.skips_rest and not self.attends(module):
            self.root = self.root if self._roots else module
            self._roots.append(id(module))
        if not self.skips_rest and self._mode is not None:
            self._mode.wait(self._whole)
        else:
            self.stop()
        self._continues = False
        unwritten = self.step not in self.steps_written or self._in_part
        if self._changed and (unwritten or self._may_write()) and not (self._is_trial() and self._is_dull()):
            self.write()
        self._in_part = False

    def listen(self) -> None:
        """Record what this thread computes outside modules."""
        if self._mode is None:
            self._start().wait(self._whole)

    def _start(self) -> RecordingMode:
        self._mode = RecordingMode(self._tracer, self.failed)
        put(self._mode)
        return self._mode

    def stop(self) -> None:
        """Record nothing more until the next pass."""
        if self._mode is None:
            return
        if not take(self._mode):
            self._mode.skips_rest = True  # in another thread, which takes it off itself
            self.left.append(self._mode)
        self.operations += self._mode.operations
        self._mode = None  # not before: a signal handler's error may come between
        self._guarded(self._tracer.forget if self.skips_rest else self._tracer.stop)

    def stop_waiting(self) -> None:
        """Record nothing of this thread until the next pass, if none is in progress."""
        if self._mode is not None and self._mode.between and self._mode.follows():
            self.stop()

    def leave(self) -> None:
        """Take off the modes that were left on in this thread."""
        self.left = [mode for mode in self.left if not take(mode)]

    def abandon(self) -> None:
        """In a forked process, forget what its parent records."""
        if self._mode is not None:
            take(self._mode)
            self._mode = None
            self._tracer.forget()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Take the mode off the stack for a while."""
        was_on = self._mode is not None and take(self._mode)
        try:
            yield
        finally:
            if was_on and self._mode is not None:
                put(self._mode)

    def stop_listening(self) -> None:
        """Record nothing more in this pass."""
        self.skips_rest = True
        if self._mode is not None:
            self._mode.skips_rest = True

    # layers

    def _wanted(self, site: Site) -> bool:
        """Return whether a call is recorded, and count those that are not asked for.

        The first of a pass always is: it tells whether the pass is of the same generation as the one before.
        """
        if self._mode is not None and self._mode.between and not self._may_take(self._mode):
            return False
        self._turn += 1
        number = layer_number(site.name)
        wanted = wanted_layer(self.options.layers, self._turn - 1 if number is None else number, site.name)
        if not wanted:
            self._count(not self._continues)
            self.unwanted[site.name] = None
        self._first = site if self._turn == 1 and not wanted else self._first
        return ((wanted and self.due) or self._turn == 1) and self._room(site)

    def _may_take(self, mode: RecordingMode) -> bool:
        """Return whether a call between passes is recorded: one of the first, and before a backward pass."""
        self.calls_between += 1
        if self._whole:
            return True
        mode.skips_rest = self.calls_between > _MOST_BETWEEN or (self.calls_between > 1 and mode.backward)
        if mode.skips_rest and not (mode.backward and self.options.one_file):
            self.missed[f"calls outside modules after the first {self.calls_between - 1}"] = 0
        return not mode.skips_rest

    def _room(self, site: Site) -> bool:
        """Return whether a GPU has memory for the work on a layer; if not, name the layer as missed."""
        if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
            return True
        unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # that the allocator keeps
        if torch.cuda.mem_get_info()[0] + unused >= _ROOM:
            return True
        self._miss(site, f"less than {_ROOM >> 20} MiB of the GPU's memory are free")
        return False

    def _count(self, calls: int) -> None:
        self._calls[id(self._outermost)] += calls

    def _is_trial(self) -> bool:
        """Return whether the next pass may be a better one than those before.

        The last one ended by an error, such as of memory, or a layer had one query and one key, as where the language
        of a text is asked first, or a framework only tried the model.
        """
        may_be = self.options.one_file and 0 < self.passes <= _TRIALS and bool(self.layers)
        return may_be and (self._failed or any(layer.single for layer in self.layers) or self._is_dull())

    def _is_dull(self) -> bool:
        return all(layer.uniform for layer in self.layers)

    def _forget_trial(self) -> None:
        """Forget what the pass in progress does better: earlier ones of its module, or all that tried the model."""
        others = set[int]() if self._is_dull() else {*self._calls} - {id(self._outermost)}
        left = Counter({call: count for call, count in self._taken.items() if call[0] in others})
        self.layers = [layer for layer in self.layers if layer.call in left]
        self._budget.seen -= self._taken.total() - left.total()
        self._taken, self._after_trial = left, False
        self._calls = Counter({module: count for module, count in self._calls.items() if module in others})
        self.root = self.root if left else self._outermost

    def _take(self, layer: RecordedLayer) -> None:
        if self.skips_rest:
            return
        layer.asked = layer.site is not self._first
        name = layer.site.name
        layer.call = id(self._outermost), name, self._in_pass.count(name)
        self._in_pass.append(name)
        if self._continues:
            if self._continue(layer):
                self.generates = True
                return
            self._continues = False
            if not self._after_trial:
                root = self.root
                if not self._advance(self.step + 1):
                    self.stop_listening()
                    return
                self.root, self._roots = root, [id(root)]
        if self._after_trial:
            self._forget_trial()
        self._count(layer.asked)
        self._taken[layer.call] += 1
        self._budget.add(self.layers, layer)
        self._changed = self.due
        took = time.monotonic() - max(self._began, self._wrote)
        if took > _PATIENCE and self._may_write() and not self.folder.replaces_earlier(self.step):
            self.write()
            self._in_part = True

    def _continue(self, layer: RecordedLayer) -> bool:
        """Add the layer to the same one of the passes before; return whether it continues that."""
        place = next((i for i, each in enumerate(self.layers) if each.call == layer.call), None)
        if place is None:
            return layer.call in self._taken or len(self._in_pass) > 1  # it did not fit into the file
        grows, found = continued(self.layers[place], self._budget.cut(layer), 2 * self.options.rows)
        if not grows and len(self._in_pass) == 1:
            return False
        if found.refused and found.asked and self.due:
            self._refused[found.refused][layer.call] += 1
        self.layers[place] = found
        self._changed = self.due
        return True

    @property
    def refused(self) -> list[str]:
        """What is not kept of a generation, and why."""
        return [
            f"{count} decode {'step' if count == 1 else 'steps'} not kept: {why}"
            for why, calls in self._refused.items()
            for count in [max(calls.values())]
        ]

    def _miss(self, site: Site, why: str, calls: int = 1) -> None:
        if not self.due:
            return
        self._count(0 if self._continues else calls)
        self.missed[f"{why} ({site.name})"] += 1

    def _unseen(self, site: Site) -> None:
        if not self.skips_rest:
            self._miss(site, "no softmax of a product was seen inside")

    # steps and files

    def new_step(self, step: int, due: bool = True) -> None:
        """Begin another step."""
        self.step, self.due = step, due
        self._roots = []
        self._begun = False
        self.layers = []
        self._taken.clear()
        self._calls.clear()
        self.calls_between = 0
        self._budget = Budget(self.options.max_bytes, self.options.rows)

    def note_end(self, called: bool) -> None:
        """Note where the only step ends, if a module was `called` again inside the model."""
        if called and self.options.one_file:
            self.ended = self.places.around(self._next)

    def finish_step(self) -> None:
        """Write what is not written yet."""
        if self._changed:
            self.write()

    def finish(self) -> None:
        """Write what is not written yet, and return when everything is: no thread is left."""
        if self._changed:
            self.write(at_once=True)  # at the end of the program, no thread can be started any more
        self.await_writer()

    def await_writer(self) -> None:
        """Wait until the file that is being written is complete."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _may_write(self) -> bool:
        busy = self._writer is not None and self._writer.is_alive()
        return not busy and time.monotonic() - self._wrote >= _SHARE * self._writing_took

    def write(self, at_once: bool = False) -> None:
        """Write the file of this step, complete as of now, in a thread; the only file before this returns.

        Programs that record one file often end at once, and not always in a way that waits for threads.
        """
        self.await_writer()
        self._guarded(partial(self._write, at_once or self.options.one_file))
        self._changed = False

    def _write(self, at_once: bool) -> None:
        self._budget.fit(self.layers)
        layers = sorted((layer for layer in self.layers if layer.asked), key=lambda layer: layer.site.turn)
        if not layers or not self.due:
            return
        remarks = [*self._budget.remarks(self.options.rows), *self.refused]
        step = None if self.options.one_file else self.step
        program = program_of(self.places.model(self.root if self._roots else None), self.options)
        sites = self.places.renamed(layer.site for layer in layers)
        layers = [replace(layer, site=site) for layer, site in zip(layers, sites, strict=True)]
        self.steps_written.add(self.step)
        self.seen, self.recorded = self.calls, len(layers)
        self.unfit = self._budget.seen - len(self.layers)

        def write() -> None:
            began = time.monotonic()
            self._guarded(lambda: self.folder.write(step, *contents(layers, program, step, remarks)))
            self._wrote = time.monotonic()
            self._writing_took = self._wrote - began

        if at_once:
            write()
        else:
            self._writer = threading.Thread(target=write, name="attn-tui writer")
            self._writer.start()

    # errors

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            unseen(call)
        except Exception as error:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Keep an error of the recorder from the program, and report it at the end; raise one of the program's."""
        if _is_of_signal(error):
            raise error
        frames = extract_tb(error.__traceback__)
        place = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
        self.missed[f"{type(error).__name__}: {str(error)[:200]}{place}"] += 1


def _is_of_signal(error: BaseException) -> bool:
    """Return whether a signal handler of the program raised an error, such as that of a timeout."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    return any(frame.f_code in handlers for frame, _ in walk_tb(error.__traceback__))

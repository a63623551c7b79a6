"""The watch over a package's functions while its tests run.

The callback `enter` runs before each call. It looks the signature of the call up in a table; for a
signature with too few recordings, a shadow of the test starts (see runtime.testing.shadow), which
records this call, and all further such calls of the test. The test itself runs on as it is.
runtime.testing.budget decides which calls are recorded, and runtime.testing.shadow_pool by which
shadow.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from collections import defaultdict
from collections.abc import Generator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from os import getpid  # this and others by name: a test may have replaced these functions
from sys import _getframe as frame_of  # pyright: ignore[reportPrivateUsage]
from threading import get_ident
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from graphir.passes import Policy
from graphir.runtime.recording import record
from graphir.runtime.recording.captured import UNDER_TEST, ArraySlot, slots
from graphir.runtime.recording.numpy_.interception import MakerPlaces, maker_places
from graphir.runtime.recording.numpy_.watched_code import watched_code
from graphir.runtime.recording.recording import RecordingSession
from graphir.runtime.testing.budget import HOT, MOST_SIGNATURES, Budget, CallSignature, Claims
from graphir.runtime.testing.facts import Facts, PackagePlaces
from graphir.runtime.testing.instrument import WatchedFunction, WatchedPackage, set_callbacks
from graphir.runtime.testing.isolation import observe_acts, visible_act
from graphir.runtime.testing.ledger import CallRecord, Ledger, source_digest
from graphir.runtime.testing.shadow import ShadowSide
from graphir.runtime.testing.shadow_calls import ShadowCalls, WatchedCall
from graphir.runtime.testing.shadow_pool import ShadowPool
from graphir.runtime.testing.signatures import arguments_text, array_dtypes, call_key

_MOST_FUNCTIONS = 1 << 16
"""Bytes of the memory that forked processes share, one a function: numbers beyond share bytes."""
_ELSEWHERE = "only other threads or processes than the tests', or code outside of tests, call it"
_HIDDEN = "ml_dtypes"
_GENERATOR = "it is a generator, and no function that was recorded runs it to its end"


class FunctionWatch:
    """Watches the functions of a package, and keeps the ledger of what their recordings saw."""

    def __init__(
        self, package: str, root: str, policy: Policy | None = None, against: Sequence[str] = ()
    ) -> None:
        self.recorders: dict[tuple[str, str], set[str]] = {}
        """By function and signature, the tests that record it; other signatures: any test."""
        self.ledger = Ledger()
        self._package, self._root = WatchedPackage(package), root
        self._policy, self._against = policy, against
        self._elsewhere = mmap.mmap(-1, _MOST_FUNCTIONS)
        """The functions that are called outside of tests, also in forked processes."""
        self._tables = defaultdict[int, dict[Any, CallSignature]](dict)
        """The signatures of each function, by the keys of calls."""
        self._by_text: dict[tuple[int, str], CallSignature] = {}
        self._hot = HotFunctions()
        self._test, self._on = "", False
        self._process, self._thread = getpid(), get_ident()
        self._budget = Budget()
        self._claims = Claims(self._budget)
        self._shadows = ShadowPool(self.ledger, self._budget, self._claims)
        self._calls_here: ShadowCalls | None = None
        """The recording of calls, if this process is a shadow."""
        self._slots: list[ArraySlot] = []
        self._places: MakerPlaces = []
        self._imports = 0
        self._hidden = HiddenDtypes()

    # -- the test run

    def start(self, hides_dtypes: bool) -> None:
        """Watch the functions of the package's modules that are loaded.

        With `hides_dtypes`, tests do not see that this process has imported ml_dtypes.
        """
        UNDER_TEST.add(self._package.name.partition(".")[0])
        set_callbacks(self._enter, self._take_result, self._leave)
        _warm_up()
        self._watch_modules()
        if hides_dtypes:
            self._hidden.hide()
        observe_acts(self._notice)

    def begin(self) -> None:
        """Begin a test."""
        if self._calls_here is None:
            self._budget.begin_test()
        self._shadows.tests_left -= 1
        if self._shadows.tests_left <= 0:
            self.leave()
            self._shadows.current = None

    @property
    def is_shadow(self) -> bool:
        """Whether this process is a shadow."""
        return self._calls_here is not None

    def leave(self, last: bool = False) -> None:
        """End this process if it is a shadow; with `last`, after the last of its tests alone."""
        if self._calls_here is not None and (not last or self._shadows.tests_left <= 1):
            self._calls_here.side.end()

    @contextlib.contextmanager
    def test(self, name: str) -> Generator[None]:
        """Context manager: a part of a test runs."""
        started = perf_counter()
        if len(sys.modules) != self._imports:
            self._watch_modules()
        self._hot.forget(self.is_shadow)
        self._test, self._on = name, True
        if self._calls_here is not None:
            self._calls_here.test = name
        try:
            yield
        except Exception as error:
            if self._calls_here is not None:
                self._calls_here.settle(is_failure=True)
                text = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
                self._calls_here.side.send({"failed": text})
            raise
        finally:
            self._on = False
            self._budget.test_seconds += perf_counter() - started
            self._shadows.collect()

    def stop(self) -> Ledger:
        """Give the functions their own code back, wait for all shadows, and return the ledger."""
        for function in self._package.functions.values():
            function.use(function.own)
        self._shadows.collect(wait=True)
        for signature in self._by_text.values():
            self.ledger.add_call(signature.call)
        reached = {name for name, _ in self.ledger.calls}
        for function in self._package.functions.values():
            if function.name in reached:
                lines = range(function.line, function.end_line + 1)
                self.ledger.sources[function.name] = source_digest(function.file, lines)
            elif self._elsewhere[function.number % _MOST_FUNCTIONS]:
                self.ledger.refused.setdefault(function.name, _ELSEWHERE)
        self.ledger.modules = len(self._package.modules)
        return self.ledger

    def _watch_modules(self) -> None:
        self._imports = len(sys.modules)
        if self._calls_here is None:  # the session of a shadow has replaced them
            self._places = maker_places()
        if not self._package.update():
            return
        functions = [*self._package.functions.values()]
        arrays = slots(*(x for each in functions for x in each.functions))
        self._slots = [x for x in arrays if x.access and type(x.value) is np.ndarray]
        self.facts = Facts(PackagePlaces(self._root, functions), self._policy, self._against)
        if self._calls_here is not None:
            self._calls_here.facts = self.facts

    def _notice(self, event: str, args: tuple[Any, ...]) -> None:
        """Notice acts of the test for which its shadow ends, so that the next call gets another."""
        if self._shadows.current is None or not self._on:
            return
        try:
            is_visible = bool(visible_act(event, args))
        except Exception:  # a program may have events of its own, of the same name
            is_visible = True
        if is_visible and get_ident() == self._thread:
            self._shadows.current = None

    # -- callbacks of watched code

    def _enter(self, number: int, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Return whether a shadow has made the call; `_take_result` then has its result.

        A shadow notes the call if it is inside of a recorded one, and else records it if needed.
        """
        function = self._package.functions[number]
        if self._passes_by(function):
            return False
        try:
            key = call_key(args, keywords)
            signature = self._tables[number].get(key)
        except Exception:  # objects may refuse any question
            return False
        if signature is None and len(self._tables[number]) < MOST_SIGNATURES:
            signature = self._tables[number][key] = self._new_signature(function, args, keywords)
        if signature is not None and signature.test is not self._test:
            signature.test = self._test
            signature.call.tests.append(self._test)
        here = self._calls_here
        if here is not None and here.root is not None:
            if signature is None:
                return False
            return here.enter_inner(WatchedCall(function, signature, args, keywords), frame_of(1))
        if signature is not None and self._needs_recording(function, signature):
            here = here or self._claim(function, signature)
            if here is not None:
                return here.record(WatchedCall(function, signature, args, keywords))
        self._hot.count(function)
        return False

    def _passes_by(self, function: WatchedFunction) -> bool:
        """Whether nothing records a call of a function, whatever its arguments are."""
        here = self._calls_here
        if not self._on or get_ident() != self._thread:
            self._elsewhere[function.number % _MOST_FUNCTIONS] = 1
            return True
        if function.kind == "coroutine":
            self.ledger.refused[function.name] = "it is a coroutine"
            if here is None:
                function.use(function.own)
            return True
        return here is not None and here.passes

    def _new_signature(
        self, function: WatchedFunction, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> CallSignature:
        """Return the signature of a call with a new key; keys of equal texts share a signature."""
        text = function.number, arguments_text(args, keywords)
        signature = self._by_text.get(text)
        if signature is None:
            call = CallRecord(function.name, text[1])
            signature = self._by_text[text] = CallSignature(call)
            signature.kind = call.function, array_dtypes(call.arguments)
            signature.tests = self.recorders.get((call.function, call.arguments))
            self._hot.note_news(function)
            if function.kind == "generator":
                self.ledger.lost_calls.setdefault(call.function, _GENERATOR)
        return signature

    def _needs_recording(self, function: WatchedFunction, signature: CallSignature) -> bool:
        """Whether this test records a call outside of other recordings."""
        is_refused = function.kind == "generator" or signature.call.function in self.ledger.refused
        return not is_refused and self._claims.allow(signature, self._test)

    def _claim(self, function: WatchedFunction, signature: CallSignature) -> ShadowCalls | None:
        """Claim a recording; return the calls of the new shadow if this is now its process."""
        if getpid() != self._process:  # a process that the test has forked
            self._elsewhere[function.number % _MOST_FUNCTIONS] = 1
            return None
        side = self._shadows.claim(signature)
        return None if side is None else self._become_shadow(side)

    def _become_shadow(self, side: ShadowSide) -> ShadowCalls:
        for function in self._package.functions.values():
            function.use(function.shadowed)
        self._hot.watch(False)
        self._hidden.show()
        session = RecordingSession(self._package.name, self._slots, self._places)
        here = ShadowCalls(side, session, self.facts, self._claims.kinds, self._hot.watch)
        here.test, here.compares = self._test, bool(self._against)
        self._calls_here = here
        return here

    def _take_result(self) -> Any:
        return None if self._calls_here is None else self._calls_here.take_result()

    def _leave(self, number: int, result: Any) -> Any:
        """Note the result of a call in a shadow, and return it."""
        if self._calls_here is not None:
            self._calls_here.leave(number, result, frame_of(1))
        return result


class HotFunctions:
    """The functions that tests call so often that they run unwatched until the end of the test."""

    def __init__(self) -> None:
        self._functions: list[WatchedFunction] = []
        self._calls = defaultdict[int, int](int)
        """The calls of each function without news, by its number, since it was last hot."""
        self._most_calls: dict[int, int] = {}
        """The calls after which a function that was hot in a test before is hot again."""

    def count(self, function: WatchedFunction) -> None:
        """Count a call without news; after the last that is watched, the function is hot."""
        number = function.number
        self._calls[number] += 1
        if self._calls[number] >= self._most_calls.get(number, HOT):
            self._most_calls[number] = max(1, self._calls[number] // 2)
            function.use(function.own)
            self._functions.append(function)

    def note_news(self, function: WatchedFunction) -> None:
        """Watch as many calls of a function again as of one that was never hot."""
        self._most_calls.pop(function.number, None)

    def watch(self, is_watched: bool) -> None:
        """Give hot functions the code of shadows, whose recording needs it, or their own."""
        for function in self._functions:
            function.use(function.shadowed if is_watched else function.own)

    def forget(self, in_shadow: bool) -> None:
        """Watch all functions again."""
        for function in self._functions:
            function.use(function.shadowed if in_shadow else function.watched)
            self._calls[function.number] = 0
        self._functions.clear()


def _warm_up() -> None:
    """Record once, so that shadows find modules and caches loaded."""
    watched_code("", __file__)

    def twice(x: Any) -> Any:
        return x * np.float64(2) + x.mean()

    recording = record(twice, np.ones(2, np.float32))
    str(recording.report().sentences)


# -- dtypes that tests do not have without this project


class HiddenDtypes(MetaPathFinder, Loader):
    """Hides the module ml_dtypes and its names until something imports it, or `show` is called.

    graphir imports ml_dtypes, and `np.dtype("bfloat16")` then has a meaning. The tests of a package
    that does not import ml_dtypes run without it.
    """

    def __init__(self) -> None:
        self._names: dict[Any, Any] = {}
        self._modules: dict[str, ModuleType] = {}

    def hide(self) -> None:
        """Hide what the import of ml_dtypes has added."""
        modules = {x: sys.modules[x] for x in sys.modules if x.partition(".")[0] == _HIDDEN}
        table: Any = np.sctypeDict
        names = {x: kind for x, kind in table.items() if kind.__module__ == _HIDDEN}
        self._modules, self._names = modules, names
        for name in modules:
            del sys.modules[name]
        for name in names:
            del table[name]
        sys.meta_path.insert(0, self)

    def show(self) -> None:
        """Add all of it again."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        table: Any = np.sctypeDict
        table.update(self._names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Show what is hidden if a test imports it after all."""
        if fullname != _HIDDEN:
            return None
        self.show()
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is."""

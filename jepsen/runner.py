"""A run from the first table to the last read.

The order at the end matters. First the nemeses' faults are undone; then the clients
end, one of them killed if clients were; then the server is killed once more if it was,
so that the last recovery comes after the last commit; then every key is read. Every
write that was ever acknowledged has to be in these reads.

A step that fails once clients work (a server that does not come back, a nemesis that
breaks down) is a problem of the run like any other. The steps after it are tried all the
same, and the history that was recorded until then is written and judged.
"""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tique
from jepsen import history, preload, recorder, systems
from jepsen.client import Client, Notes
from jepsen.crew import Crew
from jepsen.faultpoints import FaultPoints
from jepsen.nemesis import NEMESES, Scene, chosen
from jepsen.nemesis.base import FaultNote
from jepsen.plan import Plan
from jepsen.preload import Preload
from jepsen.workloads import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jepsen.recorder import Event

_PAUSE = 0.25
_BEGIN_SECONDS = 120.0
"""The time for all clients to have begun."""
_READ_SECONDS = 120.0
"""The time for the reads at the end."""
_OPTIONS = {"lease": 1.0, "checkpoint_age": 0.3, "uncommitted_fold_rows": 0}
"""Processes are given up, and versions folded, as often as a short run can show; wide
queries read small tables as they would large ones."""
_FAILURES = "failures.txt"
_WRONG = {True: "aborted", False: "committed"}
"""The wrong outcome of a transaction whose writes are there, or are not."""


@dataclass(frozen=True)
class Request:
    """The parameters of a run.

    Attributes
    ----------
    url
        A database, or a scheme and a colon for one of the run's own.
    workload
        Its name.
    nemeses
        Their names, or ``all``.
    seconds
        How long it runs, without its beginning and end.
    transactions
        After how many operations it ends, if that is earlier.
    clients, processes
        How many clients there are, in how many processes (one, if the engine is
        embedded).
    seed
        Fixes the choices, not their times.
    mutation
        A name of :data:`jepsen.mutations.MUTATIONS`: tique is broken in that way.
    level
        The transactions' isolation level, of :data:`jepsen.workloads.LEVELS`.
    options
        Further options of ``tique.connect``.
    bulk
        The share of transactions that commit in bulk.
    """

    url: str
    workload: str
    nemeses: Sequence[str] = ()
    seconds: float = 10.0
    transactions: int | None = None
    clients: int = 8
    processes: int = 4
    seed: int = 1
    mutation: str | None = None
    level: str = "snapshot"
    options: Mapping[str, Any] = field(default_factory=dict)
    bulk: float = 0.0


@dataclass
class Result:
    """The result of a run.

    Attributes
    ----------
    request
        Its parameters.
    began
        CLOCK_MONOTONIC at its beginning, in nanoseconds.
    events
        The history, in its order.
    faults
        The injected faults.
    outcomes
        The answers of :meth:`tique.Connection.outcome` at the end about unknown
        outcomes.
    problems
        Failures apart from the history's verdict.
    """

    request: Request
    began: int
    events: list[Event]
    faults: list[FaultNote]
    outcomes: Counter[str]
    problems: list[str]

    def operations(self) -> Iterator[history.Operation]:
        """The history, as checkers take it."""
        for index, event in enumerate(self.events):
            yield history.Operation(
                index,
                event.time - self.began,
                event.process,
                event.kind,  # type: ignore[arg-type]
                event.f,
                _micro_operations(event.value)
                if event.f == "txn"
                else history.plain(event.value),
                event.error,
            )


def _micro_operations(value: list[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (f, key, tuple(argument) if isinstance(argument, list) else argument)
        for f, key, argument in value
    )


class Run:
    """One run.

    Parameters
    ----------
    request
        Its parameters.
    folder
        An empty folder for its files.
    show
        Called with each step.
    """

    def __init__(
        self,
        request: Request,
        folder: Path,
        show: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.request = request
        self.folder = folder.absolute()
        self._show = show
        self._workload = LEVELS[request.level][request.workload]
        self._problems: list[str] = []

    def run(self) -> Result:
        """Run it, and write its history beside the other files.

        Raises
        ------
        jepsen.systems.Unusable
            If the URL's system cannot be used, or not with one of the nemeses.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        systems.kind_of(self.request.url).expect(self._workload)
        system = systems.prepare(self.request.url, self.folder)
        names = chosen(self.request.nemeses, system)
        with ExitStack() as stack:
            # The server's account reads these, which cannot reach every folder.
            shared = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            shared.chmod(0o755)
            disk = _preload("slow_disk", shared) if "disk" in names else None
            for_server = preload.environment(disk) if disk else {}
            self._show("starting")
            stack.callback(system.stop)
            system.start(for_server)
            plan = self._plan(system)
            clocks, environments = [], []
            for number in range(plan.processes):
                preloads = [disk] if disk and system.is_embedded else []
                if "clock" in names:
                    clocks.append(_preload("clock_jump", shared, number))
                    preloads.append(clocks[-1])
                environments.append(preload.environment(*preloads))
            system.create(self._workload)
            plan = dataclasses.replace(plan, began=time.monotonic_ns())
            plan.write(self.folder / "plan.json")
            crew = Crew(plan, self.folder / "plan.json", environments)
            scene = Scene(system, crew, disk, clocks)
            outcomes: Counter[str] = Counter()
            try:
                with self._step("the clients' work"):
                    self._work(plan, scene, names)
            finally:
                crew.kill()
            if "server" in names:
                with (
                    self._step("the server's last crash"),
                    scene.fault("server", "the last time"),
                ):
                    system.crash(random.Random(self.request.seed))  # noqa: S311
            self._show("reading all of it")
            with self._step("the reads at the end"):
                self._read_all(plan)
            with self._step("asking for outcomes"):
                outcomes = self._ask_outcomes(plan)
        return self._result(plan, scene, outcomes)

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        """Make a failure a problem of the run, with its traceback in a file."""
        try:
            yield
        except Exception as error:
            with (self.folder / _FAILURES).open("a") as file:
                traceback.print_exc(file=file)
            self._problems.append(
                f"{what} failed: {type(error).__name__}: {error} (see {_FAILURES})"
            )

    def _plan(self, system: systems.System) -> Plan:
        processes = min(self.request.processes, self.request.clients)
        return Plan(
            url=system.url,
            workload=self.request.workload,
            level=self.request.level,
            folder=self.folder,
            clients=self.request.clients,
            processes=1 if system.is_embedded else processes,
            seed=self.request.seed,
            options={
                **_OPTIONS,
                **self._workload.options,
                **self.request.options,
                "isolation_level": self.request.level.upper(),
            },
            mutation=self.request.mutation,
            bulk=self.request.bulk,
        )

    def _work(self, plan: Plan, scene: Scene, names: Sequence[str]) -> None:
        """Let clients and nemeses work."""
        nemeses = [NEMESES[name](scene, plan.seed) for name in names]
        progress = _Progress(self.folder)
        scene.crew.start()
        try:
            while progress.operations() < plan.clients:
                if plan.elapsed() > _BEGIN_SECONDS:
                    raise RuntimeError(f"clients do not begin, see {self.folder}")
                time.sleep(_PAUSE)
            for nemesis in nemeses:
                nemesis.start()
            end = plan.elapsed() + self.request.seconds
            most = self.request.transactions
            while plan.elapsed() < end:
                time.sleep(_PAUSE)
                done = progress.operations()
                self._show(f"{plan.elapsed():.0f} s, {done} operations")
                if most is not None and done >= most:
                    break
        finally:
            for nemesis in nemeses:
                nemesis.stop()
        self._show("ending")
        scene.crew.end(killed=0 if "kill" in names else None)
        self._problems += scene.crew.problems
        for nemesis in nemeses:
            with self._step(f"nemesis {nemesis.name}"):
                if nemesis.failure is not None:
                    raise nemesis.failure

    def _read_all(self, plan: Plan) -> None:
        """Carry out the workload's final operations, until they are done."""
        reader = Client(
            plan,
            plan.clients,
            0,
            FaultPoints({}),
            Notes(self.folder / "notes.jsonl"),
        )
        deadline = time.monotonic() + _READ_SECONDS
        missing: Counter[str] = Counter()
        for operation in self._workload.final(
            recorder.merge(self.folder, plan.clients)
        ):
            while time.monotonic() < deadline:
                if reader.connect() and reader.perform(operation) == "ok":
                    break
                time.sleep(0.01)
            else:
                missing[operation.f] += 1
        reader.close()
        self._problems += [f"{n} times no {f} at the end" for f, n in missing.items()]

    def _ask_outcomes(self, plan: Plan) -> Counter[str]:
        """Ask for the unknown outcomes of transactions, and check the answers."""
        unknown = [note for note in self._notes() if note["kind"] == "unknown"]
        seen = self._workload.seen(
            event
            for event in recorder.merge(self.folder, plan.clients)
            if event.client == plan.clients and event.kind == "ok"
        )
        found: Counter[str] = Counter()
        with tique.connect(plan.url, **plan.options) as connection:
            for note in unknown:
                outcome = connection.outcome(note["txid"])
                found[outcome] += 1
                is_there = seen(note["value"])
                # "unknown" is also the answer once the outcome is garbage collected: a
                # clock that jumps ahead by more than the retention has that effect.
                if is_there is not None and outcome == _WRONG[is_there]:
                    self._problems.append(
                        f"transaction {note['txid']} is {outcome}, but its writes are "
                        f"{'' if is_there else 'not '}there: {note['value']}"
                    )
        return found

    def _notes(self) -> list[dict[str, Any]]:
        lines = (self.folder / "notes.jsonl").read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in lines.splitlines()]

    def _result(self, plan: Plan, scene: Scene, outcomes: Counter[str]) -> Result:
        faults = list(scene.faults)
        for note in self._notes():
            if note["kind"] in NEMESES:
                detail = f"{note['moment']} a call of the {note['phase']}"
                faults.append(
                    FaultNote(note["kind"], detail, note["time"], note["time"])
                )
            elif note["kind"] == "problem":
                self._problems.append(note["text"])
        result = Result(
            self.request,
            plan.began,
            recorder.merge(self.folder, plan.clients),
            sorted(faults, key=lambda fault: fault.start),
            outcomes,
            self._problems,
        )
        for name in ("history.edn", "history.jsonl.gz"):
            history.write(self.folder / name, result.operations())
        return result


class _Progress:
    """How many operations there are, from the growth of the clients' files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._lines = 0

    def operations(self) -> int:
        """Those that began or are over, two lines to each."""
        for path in self._folder.glob("client-*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            self._read[path] = self._read.get(path, 0) + len(text)
            self._lines += text.count(b"\n")
        return self._lines // 2


def _preload(name: str, folder: Path, number: int = 0) -> Preload:
    return Preload(
        name, preload.compiled(name, folder), folder / f"{name}-{number}.number"
    )

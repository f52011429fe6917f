"""Spans and metrics, by opentelemetry-api.

A span of a statement or a commit is open while that runs, in the context of its thread; those
of a group commit and of a checkpoint are made when it has ended, from the moments that the
driver has noted. An error gives a span its class and SQLSTATE: messages may have values in
them (P11), and are left out.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

from opentelemetry import metrics as api
from opentelemetry import trace

from tique import _observer
from tique._translation import translated
from tique._version import __version__
from tique.commit.figures import BOUNDS
from tique.database.database import opened
from tique.database.metrics import METRICS, PHASES, PHASES_HELP
from tique.database.status import status
from tique.errors import Error
from tique_backends.errors import EngineError
from tique_udfs import SequencerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Attributes: TypeAlias = "Mapping[str, str | int]"

logger = logging.getLogger("tique.observability")

_PHASES = ("certify", "append", "publish")
_COLLECTED = [metric for metric in METRICS if metric.name != "set_aside_entries"]
"""Without what the engine has to be asked for: a collection runs in a thread of its own, and
would hold up the closing of a database."""


class Telemetry:
    """The observer that hands everything on to OpenTelemetry.

    Parameters
    ----------
    tracer_provider, meter_provider
        Where it goes; None: the global one.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: api.MeterProvider | None,
    ) -> None:
        self._tracer = trace.get_tracer("tique", __version__, tracer_provider)
        meter = api.get_meter("tique", __version__, meter_provider)
        self._phases = meter.create_histogram(
            f"tique.{PHASES}",
            "s",
            PHASES_HELP,
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        self._lock = threading.Lock()
        self._current: dict[str, list[api.Observation]] = {}
        """Observations that a collection has begun to fetch, by metric."""
        for metric in _COLLECTED:
            name, callbacks = (
                f"tique.{metric.name}",
                [partial(self._observe, metric.name)],
            )
            if metric.kind == "counter":
                meter.create_observable_counter(
                    name, callbacks, metric.unit, metric.help
                )
            else:
                meter.create_observable_gauge(name, callbacks, metric.unit, metric.help)

    # Spans

    def observed(
        self, system: str, kind: str, run: Callable[_Parameters, _Result]
    ) -> Callable[_Parameters, _Result]:
        """A span ``tique.statement`` around the run of a statement."""
        attributes: _Attributes = {
            "db.system.name": system,
            "tique.statement.kind": kind,
        }

        @wraps(run)
        def observed(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            with self._span("tique.statement", attributes, trace.SpanKind.CLIENT):
                return run(*args, **kwargs)

        return observed

    @contextmanager
    def commit(self, system: str, txid: int) -> Iterator[None]:
        """A span ``tique.commit``."""
        attributes: _Attributes = {"db.system.name": system, "tique.txid": txid}
        with self._span("tique.commit", attributes, trace.SpanKind.CLIENT):
            yield

    def grouped(
        self, system: str, tickets: int, moments: tuple[float, float, float, float]
    ) -> None:
        """A span ``tique.group_commit``, with one for each phase, and their times."""
        times = _nanoseconds(moments)
        attributes: _Attributes = {
            "db.system.name": system,
            "tique.transactions": tickets,
        }
        group = self._tracer.start_span(
            "tique.group_commit", attributes=attributes, start_time=times[0]
        )
        context = trace.set_span_in_context(group)
        for at, phase in enumerate(_PHASES):
            span = self._tracer.start_span(
                f"tique.{phase}", context, start_time=times[at]
            )
            span.end(times[at + 1])
            self._phases.record(
                moments[at + 1] - moments[at],
                {"db.system.name": system, "phase": phase},
            )
        group.end(times[-1])

    def folded(self, system: str, versions: int, began: float) -> None:
        """A span ``tique.checkpoint``."""
        start, end = _nanoseconds((began, time.perf_counter()))
        attributes: _Attributes = {"db.system.name": system, "tique.versions": versions}
        self._tracer.start_span(
            "tique.checkpoint", attributes=attributes, start_time=start
        ).end(end)

    @contextmanager
    def _span(
        self, name: str, attributes: _Attributes, kind: trace.SpanKind
    ) -> Iterator[None]:
        with self._tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                told = translated(error) if isinstance(error, EngineError) else error
                span.set_status(trace.StatusCode.ERROR)
                span.set_attribute("error.type", type(told).__name__)
                sqlstate = told.sqlstate if isinstance(told, Error) else None
                if sqlstate is not None:
                    span.set_attribute("db.response.status_code", sqlstate)
                raise

    # Metrics

    def _observe(self, name: str, _options: object) -> Iterable[api.Observation]:
        """The observations of one metric.

        All metrics are of one moment: when one is asked for again the next collection has
        begun.
        """
        if _observer.observer is not self:
            return []
        with self._lock:
            if name not in self._current:
                self._current = _observations()
            return self._current.pop(name, [])


def _observations() -> dict[str, list[api.Observation]]:
    """What all open databases have to tell now."""
    found: dict[str, list[api.Observation]] = {}
    for database in opened():
        try:
            now = status(database, asks_engine=False)
        except (Error, EngineError, SequencerError) as error:
            # It is being closed, or its server does not answer.
            logger.debug(
                "no metrics of a database this time (%s)", type(error).__name__
            )
            continue
        for metric in _COLLECTED:
            found.setdefault(metric.name, []).extend(
                api.Observation(value, {"db.namespace": database.name, **labels})
                for labels, value in metric.samples(now)
            )
    return found


def _nanoseconds(moments: tuple[float, ...]) -> list[int]:
    """Moments of the performance counter as nanoseconds since 1970."""
    now, counter = time.time_ns(), time.perf_counter()
    return [now - round((counter - moment) * 1e9) for moment in moments]

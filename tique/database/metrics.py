"""The metrics of a database, from its status: names, units, values and labels.

Every way out takes them from here: Prometheus' text, and OpenTelemetry. No value of a row or
of a key is among them (P11); names of tables and threads are labels.

*Prometheus' text* is written here: the format is that of https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tique.commit.figures import PhaseFigures
    from tique.database.status import Status, TableStatus
    from tique.store.policy import CacheInfo
    from tique.timeline.replica import ReplicationStatus


Labels: TypeAlias = "dict[str, str]"


class Sample(NamedTuple):
    """A value of a metric, and its labels."""

    labels: Labels
    value: float


@dataclass(frozen=True)
class Metric:
    """A metric that is one number for each set of labels.

    Attributes
    ----------
    name : str
        Its name, without the prefix, and without its unit if that is seconds.
    kind : str
        ``"gauge"``, or ``"counter"``, which never decreases while the database is open.
    unit : str
        In the Unified Code for Units of Measure.
    help : str
        One sentence.
    samples : callable
        Its samples in a state.
    """

    name: str
    kind: Literal["gauge", "counter"]
    unit: str
    help: str
    samples: Callable[[Status], list[Sample]]


def _one(value: Callable[[Status], float]) -> Callable[[Status], list[Sample]]:
    return lambda status: [Sample({}, value(status))]


def _tables(value: Callable[[TableStatus], float]) -> Callable[[Status], list[Sample]]:
    return lambda status: [
        Sample({"table": table.name}, value(table)) for table in status.tables
    ]


def _caches(value: Callable[[CacheInfo], float]) -> Callable[[Status], list[Sample]]:
    return lambda status: [
        Sample({"cache": cache.name}, value(cache)) for cache in status.caches
    ]


def _by(
    label: str, counts: Callable[[Status], tuple[tuple[str, int], ...]]
) -> Callable[[Status], list[Sample]]:
    return lambda status: [
        Sample({label: name}, count) for name, count in counts(status)
    ]


def _info(status: Status) -> list[Sample]:
    facts = {
        "database": status.database,
        "sequencer": status.sequencer,
        "certifier": status.certifier,
        "format": str(status.format_version),
    }
    return [Sample(facts, 1)]


def _holder(status: Status) -> list[Sample]:
    oldest = max(status.transactions, key=lambda each: each.age, default=None)
    if oldest is None or oldest.thread is None:
        return []
    labels = {"connection": f"{oldest.connection}", "thread": oldest.thread}
    return [Sample(labels, 1)]


def _hot(at: int) -> Callable[[Status], list[Sample]]:
    def samples(status: Status) -> list[Sample]:
        sums: dict[str, int] = {}
        for key in status.hot_keys:
            sums[key.table] = sums.get(key.table, 0) + (key.conflicts, key.merges)[at]
        return [Sample({"table": name}, count) for name, count in sums.items()]

    return samples


def _last_checkpoint(status: Status) -> list[Sample]:
    last = status.checkpoint.last
    return [] if last is None else [Sample({}, last.timestamp())]


def _replica(
    name: str,
    kind: Literal["gauge", "counter"],
    unit: str,
    help_: str,
    value: Callable[[ReplicationStatus], float | Mapping[str, float] | None],
    label: str = "",
) -> Metric:
    """A metric of databases that are replicas."""

    def samples(status: Status) -> list[Sample]:
        found = None if status.replica is None else value(status.replica)
        if found is None:
            return []
        if isinstance(found, int | float):
            return [Sample({}, found)]
        return [Sample({label: key}, each) for key, each in found.items()]

    return Metric(f"replica_{name}", kind, unit, help_, samples)


_REPLICA = (
    _replica("lag", "gauge", "s", "Age of what the replica shows.", lambda r: r.lag),
    _replica(
        *("behind", "gauge", "{transaction}", "Commits that are known and not shown."),
        lambda r: r.behind,
    ),
    _replica("epochs", "counter", "{epoch}", "Epochs published.", lambda r: r.epochs),
    _replica(
        *("commits", "counter", "{transaction}", "Commits in them."),
        lambda r: r.commits,
    ),
    _replica("rows", "counter", "{version}", "Versions in them.", lambda r: r.rows),
    _replica("step", "counter", "s", "Time of a step.", lambda r: r.seconds, "step"),
    _replica(
        *("stopped", "gauge", "1", "1 for a table that is not replicated any more."),
        *(lambda r: dict.fromkeys(r.stopped, 1), "table"),
    ),
)

METRICS = (
    Metric("info", "gauge", "1", "The open database.", _info),
    Metric(
        "processes",
        "gauge",
        "{process}",
        "Processes that use the database.",
        _one(lambda status: status.processes),
    ),
    Metric(
        "sts",
        "gauge",
        "1",
        "The timestamp that a new transaction reads at.",
        _one(lambda status: status.sts),
    ),
    Metric(
        "cts",
        "gauge",
        "1",
        "The last commit timestamp.",
        _one(lambda status: status.cts),
    ),
    Metric(
        "lambda",
        "gauge",
        "1",
        "The timestamp up to which versions can be folded.",
        _one(lambda status: status.stable),
    ),
    Metric(
        "open_transactions",
        "gauge",
        "{transaction}",
        "Open transactions of this process.",
        _one(lambda status: len(status.transactions)),
    ),
    Metric(
        "oldest_snapshot_age",
        "gauge",
        "s",
        "Age of this process's oldest snapshot; 0 without one.",
        _one(lambda status: max((t.age for t in status.transactions), default=0)),
    ),
    Metric(
        "oldest_snapshot_holder",
        "gauge",
        "1",
        "1 for the connection, and the thread, that hold the oldest snapshot.",
        _holder,
    ),
    Metric(
        "set_aside_entries",
        "gauge",
        "{entry}",
        "Parts of other processes' commits that cannot be applied.",
        _one(lambda status: len(status.set_aside)),
    ),
    Metric(
        "commits",
        "counter",
        "{transaction}",
        "Transactions with writes that this process committed.",
        _one(lambda status: status.commits.committed),
    ),
    Metric(
        "conflicts",
        "counter",
        "{transaction}",
        "Commits that failed because another transaction had committed first.",
        _one(lambda status: status.commits.conflicts),
    ),
    Metric(
        "retries",
        "counter",
        "{transaction}",
        "Transactions that a connection began next after such a failure.",
        _one(lambda status: status.commits.retries),
    ),
    Metric(
        "merges",
        "counter",
        "{update}",
        "Updates that were computed again on another transaction's row.",
        _one(lambda status: status.commits.merges),
    ),
    Metric(
        "validations",
        "counter",
        "{transaction}",
        "SERIALIZABLE commits of which it was asked whether what they saw is so still.",
        _one(lambda status: status.commits.validations.count),
    ),
    Metric(
        "validations_refused",
        "counter",
        "{transaction}",
        "Those of which it was not, by what had changed.",
        _by("kind", lambda status: status.commits.validations.refused),
    ),
    Metric(
        "validations_spared",
        "counter",
        "{transaction}",
        "Those of which it was not, and that the protocol ssn let pass all the same.",
        _one(lambda status: status.commits.validations.spared),
    ),
    Metric(
        "readers_refused",
        "counter",
        "{transaction}",
        "Transactions without writes that the protocol ssn has refused.",
        _one(lambda status: status.commits.validations.readers_refused),
    ),
    Metric(
        "whole_tables_seen",
        "counter",
        "{read}",
        "Reads of SERIALIZABLE commits without a condition on single rows, by table.",
        _by("table", lambda status: status.commits.validations.whole_tables),
    ),
    Metric(
        "cached_versions",
        "gauge",
        "{version}",
        "Recent versions that no checkpoint has folded yet.",
        _tables(lambda table: table.cached_rows),
    ),
    Metric(
        "cached_tombstones",
        "gauge",
        "{version}",
        "Deletions among the recent versions.",
        _tables(lambda table: table.tombstones),
    ),
    Metric(
        "fold_obstructed",
        "gauge",
        "1",
        "1 if the table could not be folded the last time that this process tried.",
        _tables(lambda table: table.obstacle is not None),
    ),
    Metric(
        "hot_key_conflicts",
        "gauge",
        "{conflict}",
        "Conflicts on this process's hottest keys, by their table.",
        _hot(0),
    ),
    Metric(
        "hot_key_merges",
        "gauge",
        "{update}",
        "Merges on this process's hottest keys, by their table.",
        _hot(1),
    ),
    Metric(
        "checkpoint_rounds",
        "counter",
        "{round}",
        "Checkpoints that have ended in this process.",
        _one(lambda status: status.checkpoint.rounds),
    ),
    Metric(
        "checkpoint_folded_versions",
        "counter",
        "{version}",
        "Versions that this process's checkpoints brought to storage.",
        _one(lambda status: status.checkpoint.folded_rows),
    ),
    Metric(
        "checkpoint_lag",
        "gauge",
        "{timestamp}",
        "Timestamps from the oldest version that is not folded up to sts.",
        _one(lambda status: status.checkpoint.lag),
    ),
    Metric(
        "checkpoint_failing",
        "gauge",
        "1",
        "1 if the last checkpoint failed or could not fold some table.",
        _one(lambda status: status.checkpoint.last_error is not None),
    ),
    Metric(
        "checkpoint_last_timestamp",
        "gauge",
        "s",
        "When the last checkpoint ended, in seconds since 1970.",
        _last_checkpoint,
    ),
    Metric(
        "cache_entries",
        "gauge",
        "{entry}",
        "Rows or ranges of rows in memory.",
        _caches(lambda cache: cache.entries),
    ),
    Metric(
        "cache_bytes",
        "gauge",
        "By",
        "Their size; 0 for rows, which are counted.",
        _caches(lambda cache: cache.bytes),
    ),
    Metric(
        "cache_capacity",
        "gauge",
        "1",
        "Bytes at the most; for rows, their number per table.",
        _caches(lambda cache: cache.capacity),
    ),
    Metric(
        "cache_hits",
        "counter",
        "{entry}",
        "Entries that were found.",
        _caches(lambda cache: cache.hits),
    ),
    Metric(
        "cache_misses",
        "counter",
        "{entry}",
        "Entries that were not found.",
        _caches(lambda cache: cache.misses),
    ),
    Metric(
        "cache_evictions",
        "counter",
        "{entry}",
        "Entries that were evicted.",
        _caches(lambda cache: cache.evictions),
    ),
    *_REPLICA,
)
"""All metrics but the histogram; each is this process's where it says so."""

PHASES = "commit_phase"
"""The name of the only histogram, in seconds, labelled with the phase."""
PHASES_HELP = "Time that group commits spent in a phase."


def phases(status: Status) -> Iterator[tuple[Labels, PhaseFigures]]:
    """The samples of the histogram."""
    for phase in status.commits.phases:
        yield {"phase": phase.name}, phase


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(status: Status) -> str:
    """The text that a scrape gets.

    Parameters
    ----------
    status
        The state; it is this process's where it says so.
    """
    lines = [line for metric in METRICS for line in _lines(metric, status)]
    return "".join(f"{line}\n" for line in [*lines, *_histogram(status)])


def _lines(metric: Metric, status: Status) -> Iterator[str]:
    name = f"tique_{metric.name}"
    if metric.unit == "s":
        name += "_seconds"
    if metric.kind == "counter":
        name += "_total"
    yield from _heading(name, metric.kind, metric.help)
    for labels, value in metric.samples(status):
        yield _sample(name, labels, value)


def _histogram(status: Status) -> Iterator[str]:
    name = f"tique_{PHASES}_seconds"
    yield from _heading(name, "histogram", PHASES_HELP)
    for labels, phase in phases(status):
        for bound, count in phase.buckets:
            yield _sample(f"{name}_bucket", {**labels, "le": f"{bound!r}"}, count)
        yield _sample(f"{name}_bucket", {**labels, "le": "+Inf"}, phase.count)
        yield _sample(f"{name}_sum", labels, phase.seconds)
        yield _sample(f"{name}_count", labels, phase.count)


def _heading(name: str, kind: str, help_: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(
        f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items()
    )
    return f"{name}{{{shown}}} {value:.17g}"

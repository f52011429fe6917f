"""A database's state in the text format that Prometheus reads.

The format is that of https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tique.database.status import Status

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass
class _Metric:
    name: str
    kind: str
    help: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            shown = ",".join(
                f'{label}="{text.translate(_ESCAPES)}"'
                for label, text in labels.items()
            )
            yield f"{self.name}{{{shown}}} {value:.17g}"


def exposition(status: Status) -> str:
    """The text that a scrape gets: values of rows and keys are not in it (P11).

    Parameters
    ----------
    status
        The state; it is this process's where it says so.
    """
    metrics = [
        *_database(status),
        *_tables(status),
        *_checkpoints(status),
        *_caches(status),
    ]
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def _database(status: Status) -> Iterator[_Metric]:
    facts = {
        "database": status.database,
        "sequencer": status.sequencer,
        "certifier": status.certifier,
        "format": str(status.format_version),
    }
    yield _Metric("tique_info", "gauge", "The open database.", [(facts, 1)])
    ages = [transaction.age for transaction in status.transactions]
    for name, help_, value in (
        ("processes", "Processes that use the database.", status.processes),
        ("sts", "The timestamp that a new transaction reads at.", status.sts),
        ("cts", "The last commit timestamp.", status.cts),
        ("lambda", "The timestamp up to which versions can be folded.", status.stable),
        ("open_transactions", "Open transactions of this process.", len(ages)),
        (
            "oldest_snapshot_age_seconds",
            "Age of this process's oldest snapshot; 0 without one.",
            max(ages, default=0),
        ),
        (
            "set_aside_entries",
            "Parts of other processes' commits that cannot be applied.",
            len(status.set_aside),
        ),
    ):
        yield _Metric(f"tique_{name}", "gauge", help_, [({}, value)])


def _tables(status: Status) -> Iterator[_Metric]:
    tables = [({"table": table.name}, table) for table in status.tables]
    yield _Metric(
        "tique_cached_versions",
        "gauge",
        "Recent versions that no checkpoint has folded yet.",
        [(labels, table.cached_rows) for labels, table in tables],
    )
    yield _Metric(
        "tique_cached_tombstones",
        "gauge",
        "Deletions among the recent versions.",
        [(labels, table.tombstones) for labels, table in tables],
    )
    yield _Metric(
        "tique_fold_obstructed",
        "gauge",
        "1 if the table could not be folded the last time that this process tried.",
        [(labels, table.obstacle is not None) for labels, table in tables],
    )
    conflicts: dict[str, list[int]] = {}
    for key in status.hot_keys:
        counts = conflicts.setdefault(key.table, [0, 0])
        counts[0] += key.conflicts
        counts[1] += key.merges
    for at, what in enumerate(("conflicts", "merges")):
        yield _Metric(
            f"tique_hot_key_{what}",
            "gauge",
            f"{what.capitalize()} on this process's hottest keys, by their table.",
            [({"table": name}, counts[at]) for name, counts in conflicts.items()],
        )


def _checkpoints(status: Status) -> Iterator[_Metric]:
    done = status.checkpoint
    yield _Metric(
        "tique_checkpoint_rounds_total",
        "counter",
        "Checkpoints that have ended in this process.",
        [({}, done.rounds)],
    )
    yield _Metric(
        "tique_checkpoint_folded_versions_total",
        "counter",
        "Versions that this process's checkpoints brought to storage.",
        [({}, done.folded_rows)],
    )
    yield _Metric(
        "tique_checkpoint_failing",
        "gauge",
        "1 if the last checkpoint failed or could not fold some table.",
        [({}, done.last_error is not None)],
    )
    yield _Metric(
        "tique_checkpoint_last_timestamp_seconds",
        "gauge",
        "When the last checkpoint ended, in seconds since 1970.",
        [] if done.last is None else [({}, done.last.timestamp())],
    )


def _caches(status: Status) -> Iterable[_Metric]:
    for name, kind, help_ in (
        ("entries", "gauge", "Rows or ranges of rows in memory."),
        ("bytes", "gauge", "Their size; 0 for rows, which are counted."),
        ("capacity", "gauge", "Bytes at the most; for rows, their number per table."),
        ("hits", "counter", "Entries that were found."),
        ("misses", "counter", "Entries that were not found."),
        ("evictions", "counter", "Entries that were evicted."),
    ):
        suffix = "_total" if kind == "counter" else ""
        yield _Metric(
            f"tique_cache_{name}{suffix}",
            kind,
            help_,
            [({"cache": info.name}, getattr(info, name)) for info in status.caches],
        )

"""Which of an engine's settings an application may change, and which values they take.

A setting that is on no list is refused: the rewriter reads a statement before the
engine does, and its rows are kept, compared and written by other sessions than the
application's, so that a setting that changes what a text or a value means would make
the two disagree. Each engine's list is beside its other parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from re import Pattern

SEARCH_PATH = "search_path"
LOCK_TIMEOUT, STATEMENT_TIMEOUT = "lock_timeout", "statement_timeout"
TRANSACTION_TIMEOUT, IDLE_SESSION = "transaction_timeout", "idle_session_timeout"
IDLE_IN_TRANSACTION = "idle_in_transaction_session_timeout"
CONNECTIONS = frozenset({TRANSACTION_TIMEOUT, IDLE_SESSION, IDLE_IN_TRANSACTION})
"""Time-outs of the application's connection, which the engine's sessions are not under."""

NONE = re.compile("(?!)")
"""Matches no name."""
UNKNOWN = "it is not known to leave alone what tique relies on"
ROLES = "privileges are those of the role that connected; connect as that role instead"


@dataclass(frozen=True)
class SettingRules:
    """The rules of one engine.

    Parameters
    ----------
    engine
        Its name in messages.
    free
        Matches the folded names of settings that take any value.
    limited
        Names of settings with the values (folded, joined by commas) that are taken.
    reasons
        Why others are refused.
    instance
        Matches those that are settings of the whole instance, for all connections.
    custom
        Matches names that are an application's own.
    fixed
        Names that cannot change at all: a value that is taken is the one that is there.
    paths
        Names of the list of schemas in which names are looked for.
    path_text, split_path
        Write that list as the engine takes it, from one of these names and its values, or
        refuse it; and read what set_config() is given.
    kept
        Names that are never changed, each with a query of the values that mean what is
        there already.
    aliases
        Names that mean others.
    has_local
        Whether there is SET LOCAL.
    is_transactional
        Whether a transaction that is rolled back takes its settings along.
    resets_all
        Whether there is RESET ALL.
    prepares_once
        Whether PREPARE of a name that is taken is an error, and DEALLOCATE of one that
        is not; else they pass.
    """

    engine: str
    free: Pattern[str]
    limited: Mapping[str, Pattern[str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    instance: Pattern[str] = NONE
    fixed: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    path_text: Callable[[str, Sequence[str]], str] | None = None
    split_path: Callable[[str], list[str]] | None = None
    custom: Pattern[str] | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    has_local: bool = False
    is_transactional: bool = False
    resets_all: bool = False
    prepares_once: bool = False

    def name(self, name: str) -> str:
        """The setting's own name, in small letters."""
        return self.aliases.get(name, name)

    def check(self, name: str, values: Sequence[str] | None) -> None:
        """Refuse a change that could matter to tique; None stands for the default.

        Raises
        ------
        EngineError
            UNSUPPORTED, with the reason.
        """
        if self.free.fullmatch(name) or (self.custom and self.custom.fullmatch(name)):
            return
        if name not in self.limited:
            raise self._refusal(name, self.reasons.get(name, UNKNOWN))
        if values is None:
            return
        value = ",".join(
            part.strip().lower() for value in values for part in value.split(",")
        )
        if not self.limited[name].fullmatch(value):
            reason = self.reasons.get(name, UNKNOWN)
            raise self._refusal(f'{name}" to "{", ".join(values)}', reason)

    def _refusal(self, name: str, reason: str) -> EngineError:
        return EngineError(
            ErrorKind.UNSUPPORTED,
            f'setting "{name}" is not supported: {reason}',
        )


def refused_schema(name: str, reason: str, setting: str = SEARCH_PATH) -> EngineError:
    """The error of a setting that would have names looked for in a schema."""
    return EngineError(
        ErrorKind.UNSUPPORTED,
        f'setting "{setting}" is not supported with the schema {name}: {reason}',
    )

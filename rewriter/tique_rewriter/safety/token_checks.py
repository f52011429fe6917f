"""A second look at a statement's words, where the parser's is not enough."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import DRIVERS_OWN
from tique_rewriter.text.names import check_reserved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.errors import RewriteError
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Source, Word


def check_functions(
    source: Source,
    tree: exp.Expr,
    definitions: Definitions | None = None,
) -> None:
    """Refuse calls of functions that are not known to keep away from tables.

    A function of the application's own may read tables outside the snapshot, and write
    to them. Names of relations and their columns may stand before brackets too.
    ``definitions`` say of which this is known not to be so.

    Raises
    ------
    UnsupportedSQL
        At the first name before ``(`` that is not on the dialect's list, or, where the
        dialect has no list, that is a function of the application's own that reads tables.
    """
    relations = {
        name.meta.get("start")
        for name in tree.find_all(exp.Identifier)
        if not isinstance(name.parent, exp.Anonymous)
    }
    if isinstance(tree, exp.Update):
        relations.add(source.find("SET"))
    check_calls(source, source.words, relations, definitions)


def check_calls(
    source: Source,
    words: Sequence[Word],
    relations: Iterable[int | None] = (),
    definitions: Definitions | None = None,
) -> None:
    """Refuse names before ``(`` in these words, like :func:`check_functions`."""
    rules = source.rules
    for word, first, point in zip(words, words[1:], words[2:], strict=False):
        if word.keyword == "FOR" and point.keyword == "." and "phrase" in rules.draws:
            check_reserved(source, source.identifier(first), first.start)
    known = rules.before_brackets
    relations = set(relations)
    if known is None and (definitions is None or not definitions.has_unsafe_functions):
        return
    for number, (word, following) in enumerate(pairwise(words)):
        if following.keyword != "(" or word.start in relations:
            continue
        raw = source.raw(word)
        if known is None:
            # Where there is no list, the application's own functions are known.
            name = raw[1:-1].replace('""', '"') if raw[:1] == '"' else raw
            if definitions is not None and definitions.is_unsafe(name):
                raise _unsafe(source, name, word)
            continue
        if not (raw[0].isalpha() or raw[0] in '_"' or not raw[0].isascii()):
            continue
        name = raw[1:-1] if raw[0] == '"' else rules.unquoted(raw)
        before = words[number - 1].keyword if number else ""
        if before in ("::", "AS") or before in rules.bracket_words.get(name, ()):
            continue
        schema = ""
        if number > 1 and before == ".":
            schema = source.identifier(words[number - 2])
        if schema in ("", rules.function_schema) and known.fullmatch(name):
            if name == _SETTING:
                _check_setting(source, words[number + 2 : number + 4])
            if name in OF_SEQUENCES or name == _SERIAL_SEQUENCE:
                is_free = name == _SERIAL_SEQUENCE and before != "("
                arguments = words[number + 2 : number + 6]
                _check_sequence(source, name, arguments, is_free=is_free)
            continue
        if definitions is not None and definitions.may_call(schema or None, name):
            continue
        raise _unsafe(source, f"{schema}.{name}" if schema else name, word)


def _unsafe(source: Source, name: str, word: Word) -> RewriteError:
    refusal = source.unsupported(
        f"the function {name}()",
        word.start,
        "it might read or change what is in no snapshot",
    )
    return source.unread(refusal)


_SETTING = "current_setting"
OF_SEQUENCES = frozenset({"nextval", "currval", "setval"})
_SERIAL_SEQUENCE = "pg_get_serial_sequence"


def _check_sequence(
    source: Source, name: str, words: Sequence[Word], *, is_free: bool
) -> None:
    """Refuse a sequence whose name is not written there, or is one of tique's.

    One that ``is_free`` may be computed: no function of sequences gets its name, because
    that would have to be the first thing after a bracket.
    """
    if len(words) > 1 and words[0].keyword == _SERIAL_SEQUENCE.upper():
        # That is looked at by itself.
        return
    raw = source.raw(words[0]) if words else ""
    ends = len(words) > 1 and words[1].keyword in (")", ",", "::")
    is_written = ends and raw.startswith("'") and "\\" not in raw
    if is_written and not raw[1:].replace('"', "").lower().startswith("tique."):
        return
    if is_free and not is_written:
        return
    raise source.unsupported(
        f"{name}({raw if is_written else '…'})",
        words[0].start if words else 0,
        "it is tique's" if is_written else "write the name there, in single quotes",
    )


def _check_setting(source: Source, words: Sequence[Word]) -> None:
    """Refuse to ask for a setting of transactions, which are not the engine's own."""
    raw = source.raw(words[0]) if words else ""
    name = raw[1:-1].lower()
    ends = words[-1].keyword in (")", ",") if words else False
    is_written = ends and raw.startswith("'") and raw.endswith("'") and "\\" not in raw
    if is_written and name not in DRIVERS_OWN:
        return
    raise source.unsupported(
        f"current_setting({raw if is_written else '…'})",
        words[0].start if words else 0,
        f"SHOW {name} tells it" if is_written else "write the setting's name there",
    )

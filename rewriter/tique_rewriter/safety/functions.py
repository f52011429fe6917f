"""Functions of the application's own that a statement may call.

A function's body runs in the engine, where it would read storage tables behind the
driver's back. So a call is refused unless this is known of every function of its name,
whatever the schema and the arguments (the rewriter does not know which one is meant):

* Its body is one SQL expression that names no relation and calls nothing but what a
  statement itself may call. What it is declared to be does not matter then.
* It is an extension's on the dialect's list, and no VOLATILE one but those that draw values.
* The application trusts it (``Connection.trust_function``): it is not VOLATILE, so that the
  engine lets it write nothing, its text names no table that is managed, and it is still what it was.

No name that the engine's own functions have, and no set-returning function, aggregate or
function with settings of its own is among them.

What a statement calls without a name (:mod:`tique_rewriter.safety.hidden_calls`) is judged by the one
function that it is, by the same rule; of extensions that are on no list, what is not VOLATILE
is believed there.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import RewriteError
from tique_rewriter.safety.hidden_calls import HiddenCalls
from tique_rewriter.safety.token_checks import check_functions
from tique_rewriter.schema import HiddenCall, Named
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.text.source import Source
from tique_rewriter.tree.shape import check_query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tique_rewriter.dialects import Rules
    from tique_rewriter.schema import Function

_WORD = re.compile(r"\w+")
_ATOMIC = re.compile(r"BEGIN ATOMIC\s(.*?);?\s*END", re.DOTALL)
_RETURN = re.compile(r"RETURN\s(.*)", re.DOTALL)
_RUNS_TEXT = frozenset({"execute", "dblink", "dblink_exec", "query_to_xml"})


class SafeFunctions:
    """The names that may be called, with a schema and without."""

    def __init__(self, safe: Iterable[Function], all_: Iterable[Function]) -> None:
        unsafe = set(all_) - (found := set(safe))
        self._qualified = {(f.schema, f.name) for f in found}
        self._qualified -= {(f.schema, f.name) for f in unsafe}
        self._plain = {f.name for f in found} - {f.name for f in unsafe}
        self._unsafe = {f.name.lower() for f in unsafe}

    def __bool__(self) -> bool:
        """Whether there is any function that may not be called."""
        return bool(self._unsafe)

    def is_unsafe(self, name: str) -> bool:
        """Whether some function of that name may not be called."""
        return name.lower() in self._unsafe

    def has(self, schema: str | None, name: str) -> bool:
        """Whether every function of that name may be called."""
        return (schema, name) in self._qualified if schema else name in self._plain


NO_FUNCTIONS = SafeFunctions((), ())


def classify_functions(
    functions: Iterable[Function],
    hidden: Iterable[HiddenCall],
    rules: Rules,
    relations: Iterable[str],
    trusted: Mapping[str, str],
) -> tuple[SafeFunctions, HiddenCalls]:
    """Return the functions that may be called, and the hidden calls that may not.

    Parameters
    ----------
    functions
        All that are not the engine's own.
    hidden
        All hidden calls.
    rules
        The dialect's.
    relations
        The names of the managed tables and the views.
    trusted
        The digests of functions that the application trusts, by signature.
    """
    functions = list(functions)
    names = {name.lower() for name in relations}
    own = {function.name.lower() for function in functions}
    believed = {f.signature for f in functions if _is_believed(f, rules)}
    vouched = {
        function.signature
        for function in functions
        if trusted.get(function.signature) == function.digest
        and why_unsafe(function) is None
        and why_untrusted(function, names) is None
    }
    expressions = {
        function.signature: f"{function.body} {function.defaults}"
        for function in functions
        if function.is_plain
        and function.language == "sql"
        and not (rules.before_brackets is None and _calls(function, own))
        and _is_expression(function, rules)
    }
    named = [_by_name(f) for f in functions if f.is_shadowed]
    named += [_by_name(f, Named.DEFAULT) for f in functions if f.extension is None]
    while True:
        harmless = believed | vouched | expressions.keys()
        calls = HiddenCalls(
            replace(call, advice=_advice(call, functions, names, rules))
            for call in (*hidden, *named)
            if not _is_harmless(call, harmless, rules)
        )
        # An expression may have a hidden call of another function.
        caught = [
            signature
            for signature, text in expressions.items()
            if calls.in_definition(text, rules) is not None
        ]
        if not caught:
            break
        for signature in caught:
            del expressions[signature]
    safe = [
        function
        for function in functions
        if why_unsafe(function) is None
        and (
            _is_known(function, rules)
            or function.signature in vouched
            or function.signature in expressions
        )
    ]
    return SafeFunctions(safe, functions), calls


def _by_name(function: Function, named: Named = Named.FUNCTION) -> HiddenCall:
    """Return the call of a function by a name that statements may call."""
    return HiddenCall(
        named,
        function.schema,
        function.name,
        f"the function {function.name}()",
        function.signature,
    )


def _is_harmless(call: HiddenCall, harmless: Collection[str], rules: Rules) -> bool:
    if not call.is_engines:
        return call.function in harmless
    known = rules.before_brackets
    return known is not None and known.fullmatch(call.function) is not None


def _advice(
    call: HiddenCall,
    functions: Iterable[Function],
    relations: Collection[str],
    rules: Rules,
) -> str:
    """What to do about a call that is refused."""
    found = [f for f in functions if f.signature == call.function]
    if not found:
        return "use another function"
    if call.named is Named.FUNCTION and found[0].is_shadowed:
        return f"rename it, or write {rules.function_schema}.{call.name}()"
    reason = why_unsafe(found[0]) or why_untrusted(found[0], relations)
    trust = f"Connection.trust_function({call.function!r})"
    if reason is None:
        return f"if it reads no table, call {trust}"
    return f"{reason}, then call {trust}" if found[0].is_volatile else reason


def why_unsafe(function: Function) -> str | None:
    """Why a function cannot be called, whatever its body; None if it may."""
    if function.is_shadowed:
        return "the engine has a function of that name"
    if not function.is_plain:
        return (
            "it is an aggregate or returns rows, or it has settings of its own (SET …)"
        )
    return None


def why_untrusted(function: Function, relations: Iterable[str]) -> str | None:
    """Why even the application's word is not enough for a function; None if it is."""
    if function.is_volatile:
        return "it is VOLATILE and may write; declare it STABLE or IMMUTABLE"
    words = {word.lower() for word in _WORD.findall(function.body)}
    if found := sorted(words & {*relations}):
        return f"its text names {found[0]}, of which it would read storage alone"
    if found := sorted(words & _RUNS_TEXT):
        return f"its text has {found[0]}, which may read any table"
    return None


def _calls(function: Function, names: Collection[str]) -> bool:
    """Whether one of these names is in a function's text, or may be."""
    words = {word.lower() for word in _WORD.findall(function.body)}
    return any(
        name in words if _WORD.fullmatch(name) else {*_WORD.findall(name)} & words
        for name in names
    )


def _is_known(function: Function, rules: Rules) -> bool:
    volatile = rules.extensions.get(function.extension or "")
    if volatile is None:
        return False
    return not function.is_volatile or function.name in volatile


def _is_believed(function: Function, rules: Rules) -> bool:
    """Whether an extension's function may be called where no text names it."""
    if _is_known(function, rules):
        return True
    return function.extension is not None and not function.is_volatile


def _is_expression(function: Function, rules: Rules) -> bool:
    """Whether a body in SQL is one expression, which reads no relation."""
    body = function.body.strip()
    if (atomic := _ATOMIC.fullmatch(body)) is not None:
        body = atomic.group(1)
    elif (returned := _RETURN.fullmatch(body)) is not None:
        body = f"SELECT {returned.group(1)}"
    texts = [body]
    if function.defaults:
        texts.append(f"SELECT {function.defaults}")
    return all(reads_nothing(text, rules) for text in texts)


def reads_nothing(text: str, rules: Rules) -> bool:
    """Whether a text is a query that names no relation and calls what statements may call."""
    try:
        lexed = number_placeholders(text, OWN_STYLE, lexicon=rules.lexicon)
        source = Source(lexed, rules)
        if source.words[0].keyword != "SELECT":
            return False
        tree = source.parse()
        check_query(source, tree)
        check_functions(source, tree)
    except (RewriteError, RecursionError):
        return False
    # With a composite argument ``a.name`` may be a call of a function of that name.
    refused = exp.Table | exp.DDL | exp.With
    return (
        isinstance(tree, exp.Select)
        and not any(isinstance(node, refused) for node in tree.walk())
        and not any(node.table for node in tree.find_all(exp.Column))
        and all(
            node.this.name == rules.function_schema
            and isinstance(node.expression, exp.Func)
            for node in tree.find_all(exp.Dot)
        )
    )

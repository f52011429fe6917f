"""Expressions that an engine has and the parser does not read, as calls of functions.

Only the parser sees these: the text of a plan is cut by words. A call that the parser does
not know is an expression of which nothing is known, which is what these are (P10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.dialects import Rules

_ORDERS = {
    TokenType.LT: (TokenType.ASC, "ASC"),
    TokenType.GT: (TokenType.DESC, "DESC"),
}
_OF_LISTS = frozenset({"VALUE", "ABSENT", "RETURNING"})
_SAME_AS = [TokenType.RLIKE, TokenType.EQ]
_BEFORE_VALUES = frozenset(
    (
        *("SELECT", "WHERE", "HAVING", "ON", "BY", "RETURNING", "AND", "OR", "NOT"),
        *("WHEN", "THEN", "ELSE", "BETWEEN", "DISTINCT", "ALL"),
        *("(", ",", "[", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/"),
    )
)
"""Words and operators after which a value begins."""
_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER})


def readable(tokens: Sequence[Token], rules: Rules) -> Iterator[Token]:
    """Yield the tokens that the parser is given."""
    number = 0
    while number < len(tokens):
        token = tokens[number]
        following = tokens[number + 1 : number + 2]
        is_call = bool(following) and following[0].token_type is TokenType.L_PAREN
        if is_call and token.text.lower() in rules.unknown_functions:
            if token.token_type not in _QUOTED:
                token = _other(token, TokenType.VAR, f"_{token.text}")
        elif not is_call and _is_moment(tokens, number, rules):
            # A call has a place in the tree, and what is no call has none.
            yield _other(token, TokenType.VAR, "_moment")
            yield _other(token, TokenType.L_PAREN, "(")
            token = _other(token, TokenType.R_PAREN, ")")
        elif is_call and _is_plain_object(tokens[number:], rules):
            token = _other(token, TokenType.VAR, f"_{token.text}")
        elif (
            following
            and following[0].token_type is TokenType.STRING
            and token.token_type not in _QUOTED
            and token.text.lower() in rules.literal_types
        ):
            # box '…' is a call of a function with the text.
            yield _other(token, TokenType.VAR, f"_{token.text}")
            yield _other(token, TokenType.L_PAREN, "(")
            yield following[0]
            token = _other(following[0], TokenType.R_PAREN, ")")
            number += 1
        elif "absolute" in rules.extra_syntax and _begins_value(tokens, number):
            # @ is another operator of one value, of which as little is known.
            token = _other(token, TokenType.RLIKE, "~")
        elif "same as" in rules.extra_syntax and _is_same_as(
            tokens[number : number + 2]
        ):
            number += 1
            token = _other(token, TokenType.LT_AT, "<@")
        elif (
            "sort operators" in rules.extra_syntax
            and _follow(tokens, number, "USING")
            and following
            and following[0].token_type in _ORDERS
        ):
            # USING is ASC or DESC, by the operator after it.
            number += 1
            kind, text = _ORDERS[tokens[number].token_type]
            token = _other(token, kind, text)
        elif "nulls distinct" in rules.extra_syntax and (
            length := _nulls_of_key(tokens, number)
        ):
            number += length
            continue
        elif "bit varying" in rules.extra_syntax and _follow(
            tokens, number, "BIT", "VARYING"
        ):
            # The parser knows the short name alone.
            number += 1
            token = _other(token, TokenType.VAR, "VARBIT")
        elif exp.Describe in rules.allowed_kinds and _is_described(tokens, number):
            # The parser knows one of the words, and one word after it.
            token = _other(token, TokenType.DESCRIBE, "DESCRIBE")
            if _follow(tokens, number + 1, "ALL", "TABLES"):
                yield token
                first, number = tokens[number + 1], number + 2
                at, end = (first.line, first.col, first.start), tokens[number].end
                token = Token(TokenType.VAR, "ALL TABLES", *at, end)
        elif "rows from" in rules.extra_syntax and _follow(
            tokens, number, "ROWS", "FROM", "("
        ):
            number += 1
            token = _other(token, TokenType.VAR, "_rows_from")
        elif "phrase" in rules.draws and _follow(
            tokens, number, "NEXT", "VALUE", "FOR"
        ):
            end = number + 3
            if [t.token_type for t in tokens[end + 1 : end + 2]] == [TokenType.DOT]:
                end += 2
            if end < len(tokens):
                yield _other(token, TokenType.VAR, "_next_value")
                yield _other(tokens[end], TokenType.L_PAREN, "(")
                token = _other(tokens[end], TokenType.R_PAREN, ")")
                number = end
        yield token
        number += 1


def _is_moment(tokens: Sequence[Token], number: int, rules: Rules) -> bool:
    """Whether this is CURRENT_DATE or its like, in a query or a change."""
    token, before = tokens[number], tokens[max(number - 1, 0)].token_type
    return (
        token.text.upper() in rules.moments
        and token.token_type not in _QUOTED
        and before not in (TokenType.DOT, TokenType.ALIAS)
        and tokens[0].token_type not in (TokenType.CREATE, TokenType.ALTER)
    )


def _is_plain_object(tokens: Sequence[Token], rules: Rules) -> bool:
    """Whether this is a call of json_object with values, and not the list of SQL."""
    if tokens[0].text.lower() not in rules.plain_objects:
        return False
    depth = 0
    for token in tokens[1:]:
        depth += token.token_type is TokenType.L_PAREN
        depth -= token.token_type is TokenType.R_PAREN
        if not depth:
            return True
        is_list = token.token_type is TokenType.COLON or token.text.upper() in _OF_LISTS
        if depth == 1 and is_list and token.token_type not in _QUOTED:
            return False
    return False


def _begins_value(tokens: Sequence[Token], number: int) -> bool:
    """Whether this is ``@`` where no value stands before it."""
    if tokens[number].text != "@" or tokens[number].token_type in _QUOTED:
        return False
    before = tokens[number - 1]
    return (
        bool(number)
        and before.token_type not in _QUOTED
        and before.text.upper() in _BEFORE_VALUES
    )


def _is_described(tokens: Sequence[Token], number: int) -> bool:
    """Whether this is DESC or SHOW in brackets in FROM, with another word after it."""
    if tokens[number].text.upper() not in ("DESC", "SHOW"):
        return False
    begins = any(
        _follow(tokens, number - 2, before, "(") for before in ("FROM", "JOIN")
    )
    is_quoted = tokens[number].token_type in _QUOTED
    return (begins and not is_quoted) and any(
        token.token_type is TokenType.IDENTIFIER or token.text[:1].isalpha()
        for token in tokens[number + 1 : number + 2]
    )


def _is_same_as(tokens: Sequence[Token]) -> bool:
    return [token.token_type for token in tokens] == _SAME_AS and (
        tokens[0].end + 1 == tokens[1].start
    )


def _nulls_of_key(tokens: Sequence[Token], number: int) -> int:
    """How many tokens are NULLS [NOT] DISTINCT after an index's columns here."""
    before, *words = tokens[max(number - 1, 0) : number + 3]
    if (
        before.token_type is not TokenType.R_PAREN
        or tokens[0].token_type is not TokenType.CREATE
    ):
        return 0
    keywords = [w.text.upper() for w in words if w.token_type not in _QUOTED]
    for phrase in (["NULLS", "DISTINCT"], ["NULLS", "NOT", "DISTINCT"]):
        if keywords[: len(phrase)] == phrase:
            return len(phrase)
    return 0


def _follow(tokens: Sequence[Token], number: int, *words: str) -> bool:
    """Whether the tokens from ``number`` on are these words and signs, none quoted."""
    return words == tuple(
        "" if token.token_type in _QUOTED else token.text.upper()
        for token in tokens[number : number + len(words)]
    )


def _other(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)

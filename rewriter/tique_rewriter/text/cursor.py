"""A cursor over a statement's words: how statements are read that no parser reads.

A reader asks for what may come next, from left to right, and the cursor steps over it;
nothing goes back, and no word is taken out of the :class:`~tique_rewriter.text.source.Source`.
Phrases are written as in a manual, their words in capitals:

>>> from tique_rewriter.dialects import rules_of
>>> from tique_rewriter.text.source import Source
>>> def read(text):
...     return Cursor(Source.of_text(text, rules_of("postgresql")))

>>> cursor = read('DROP SEQUENCE IF EXISTS q, other."Big Q" RESTRICT')
>>> cursor.accept("DROP SEQUENCE"), cursor.accept("IF EXISTS")
('DROP SEQUENCE', 'IF EXISTS')
>>> cursor.names("public")
[('public', 'q'), ('other', 'Big Q')]
>>> cursor.accept("CASCADE"), cursor.accept("CASCADE", "RESTRICT")
('', 'RESTRICT')
>>> cursor.finish("in DROP SEQUENCE")

A word that should not be there is refused at its place:

>>> cursor = read("SAVEPOINT s now")
>>> cursor.take().keyword, cursor.name()
('SAVEPOINT', 's')
>>> cursor.finish()
Traceback (most recent call last):
    ...
tique_rewriter.errors.UnsupportedSQL: "now" here at line 1, column 13 is not supported

Lists and brackets are read as a whole:

>>> cursor = read("ANALYZE account (id, balance)")
>>> cursor.take().keyword, cursor.qualified()
('ANALYZE', ('', 'account'))
>>> [cursor.source.identifier(word) for word in cursor.brackets()[::2]]
['id', 'balance']
>>> cursor.is_done
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tique_rewriter.text.names import check_reserved, check_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Source, Word

_Read = TypeVar("_Read")


class Cursor:
    """A place between the words of a statement, or of a part of it.

    Parameters
    ----------
    source
        The statement.
    words
        The part that is read: all of the statement's words, if it is not given.
    number
        How many of them are behind the cursor already.
    """

    def __init__(
        self, source: Source, words: list[Word] | None = None, number: int = 0
    ) -> None:
        self.source = source
        self.words = source.words if words is None else words
        self.number = number

    @classmethod
    def of_definition(cls, source: Source, number: int = 0) -> Cursor:
        """Return the cursor of a statement of DDL, in which no placeholder may be.

        Raises
        ------
        SyntaxProblem
            There is one.
        """
        refuse_placeholders(source, "DDL")
        return cls(source, number=number)

    @property
    def rest(self) -> list[Word]:
        """The words that are left."""
        return self.words[self.number :]

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self.words) - self.number

    @property
    def is_done(self) -> bool:
        """Whether no word is left."""
        return self.number >= len(self.words)

    @property
    def word(self) -> Word:
        """The next word; there has to be one."""
        return self.words[self.number]

    @property
    def keyword(self) -> str:
        """The next word in capitals; empty if it is quoted, or there is none."""
        return "" if self.is_done else self.word.keyword

    @property
    def keywords(self) -> list[str]:
        """All words that are left, in capitals."""
        return [word.keyword for word in self.rest]

    @property
    def start(self) -> int:
        """Where the next word begins; where the last one does, if none is left."""
        return self.words[min(self.number, len(self.words) - 1)].start

    @property
    def before(self) -> Word:
        """The word that the cursor stepped over last."""
        return self.words[self.number - 1]

    @property
    def statement(self) -> str:
        """The whole statement as it is written."""
        return self.source.words_text(self.source.words)

    def follows(self, *phrases: str) -> str:
        """Return the first of these phrases that comes next; empty if none does."""
        for phrase in phrases:
            keywords = phrase.split()
            found = self.words[self.number : self.number + len(keywords)]
            if [word.keyword for word in found] == keywords:
                return phrase
        return ""

    def accept(self, *phrases: str) -> str:
        """Step over the first of these phrases that comes next, and return it."""
        found = self.follows(*phrases)
        self.number += len(found.split())
        return found

    def accept_last(self, *phrases: str) -> str:
        """Step over one of these phrases, and return it, if no word is left behind it."""
        found = self.follows(*phrases)
        return self.accept(found) if len(found.split()) == self.left else ""

    def take(self, missing: str = "a word is missing") -> Word:
        """Step over the next word, whatever it is, and return it.

        Raises
        ------
        SyntaxProblem
            There is none, which ``missing`` says.
        """
        if self.is_done:
            raise self.source.syntax(missing, self.source.words[-1].start)
        self.number += 1
        return self.words[self.number - 1]

    def take_until(self, keywords: Collection[str], depth: int = 0) -> list[Word]:
        """Step over the words before the first such keyword of that depth, or over all."""
        begin = self.number
        while not self.is_done and (
            self.keyword not in keywords or self.word.depth != depth
        ):
            self.number += 1
        return self.words[begin : self.number]

    def name(self, missing: str = "a name is missing") -> str:
        """Read a name."""
        return self.source.identifier(self.take(missing))

    def unreserved_name(self) -> str:
        """Read a name that is not the one of tique's own schema."""
        start, name = self.start, self.name()
        check_reserved(self.source, name, start)
        return name

    def parts(self, missing: str = "a name is missing") -> list[str]:
        """Read names with full stops between them."""
        found = [self.name(missing)]
        while self.accept("."):
            found.append(self.name(missing))
        return found

    def qualified(self, default: str = "") -> tuple[str, str]:
        """Read ``[schema.]name``; the schema is ``default`` if none is written."""
        parts = self.parts()
        if len(parts) > 2:
            raise self.source.unsupported(
                "a name with a database in it",
                self.before.start,
                "write schema.table",
            )
        return parts[0] if len(parts) == 2 else default, parts[-1]

    def unreserved(self, default: str) -> tuple[str, str]:
        """Read ``[schema.]name`` of what is in another schema than tique's."""
        start = self.start
        schema, name = self.qualified(default)
        check_reserved(self.source, schema, start)
        return schema, name

    def writable(self, catalog: Definitions) -> tuple[str, str]:
        """Read ``[schema.]name`` of what a statement makes, changes or drops."""
        start = self.start
        schema, name = self.qualified(catalog.default_schema)
        check_writable(self.source, catalog, schema, start)
        return schema, name

    def list_of(self, read: Callable[[], _Read]) -> list[_Read]:
        """Read one thing or more, with commas between them."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return found

    def names(
        self, default: str = "", *, several: bool = True
    ) -> list[tuple[str, str]]:
        """Read one ``[schema.]name``, or ``several``."""
        if not several:
            return [self.qualified(default)]
        return self.list_of(lambda: self.qualified(default))

    def listed_names(self) -> list[str]:
        """Read a list of names in brackets; there are none if no bracket comes next."""
        start, words = self.start, self.brackets() or []
        names = [self.source.identifier(word) for word in words[::2]]
        if any(word.keyword != "," for word in words[1::2]):
            raise self.source.syntax("a list of names is expected", start)
        return names

    def text_from(self, number: int) -> str:
        """Return what is written from that word up to the cursor."""
        words = self.words[number : self.number]
        return self.source.words_text(words) if words else ""

    def brackets(self) -> list[Word] | None:
        """Step over brackets, and return the words inside; None if none come next."""
        if self.keyword != "(":
            return None
        begin = self.number + 1
        self.number += self.source.closing(self.rest) + 1
        return self.words[begin : self.number - 1]

    def finish(self, where: str = "here") -> None:
        """Refuse words that are left.

        Raises
        ------
        UnsupportedSQL
            At the first one.
        """
        if not self.is_done:
            raise self.unexpected(where)

    def unexpected(self, where: str = "here") -> UnsupportedSQL:
        """Return the refusal of the next word; of the last one, if none is left."""
        word = self.words[min(self.number, len(self.words) - 1)]
        return self.source.unexpected(word, where)


def refuse_placeholders(source: Source, where: str) -> None:
    """Refuse the values of placeholders where the engine takes none.

    Raises
    ------
    SyntaxProblem
        At the first one.
    """
    if source.lexed.arguments:
        raise source.syntax(
            f"a placeholder in {where}", source.lexed.starts[0], "write a literal"
        )

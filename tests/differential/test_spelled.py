r"""Strings with Unicode escapes mean what they mean natively (P10).

tique writes the characters in the place of the escapes, so that it reads the same text as
the engine: in a value, in a key, and in a literal that looks like the end of another one.
"""

from __future__ import annotations

import pytest

from tests.differential import scripts

ESCAPED = r"""
CREATE TABLE word (id INTEGER PRIMARY KEY, w VARCHAR(30) UNIQUE)

INSERT INTO word VALUES (1, U&'d\0061t\+000061'), (2, u&'\005C'), (3, U&'it\0027s'), (4, U&'\\n')

INSERT INTO word VALUES (5, U&'\0027; DROP TABLE word; --'), (6, U&'\03b1\+01F600'), (7, U&'%s ?'), (10, U&'\D7FF\E000')

INSERT INTO word VALUES (8, U&'\0064ata')

SELECT id, w FROM word ORDER BY id

SELECT id FROM word WHERE w = U&'\0064ata'

SELECT U&'\n'

SELECT U&'\00e' AS a

SELECT U&'\+110000' AS a

SELECT U&'\0000' AS a

SELECT id FROM word WHERE w IN (U&'\\', U&'\\n', U&'\0027; DROP TABLE word; --') ORDER BY id

UPDATE word SET w = w || U&'\00e9' WHERE w = U&'it\0027s'

SELECT id, w FROM word ORDER BY id
"""


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB has no such strings")
@pytest.mark.parametrize("mode", scripts.MODES)
def test_unicode_escapes(engine, mode):
    scripts.check(engine, ESCAPED, mode)

"""The cursor over a statement's words: its docstring is true."""

import doctest

from tique_rewriter.text import cursor


def test_the_examples_are_true():
    found = doctest.testmod(cursor)
    assert found.attempted > 5
    assert found.failed == 0

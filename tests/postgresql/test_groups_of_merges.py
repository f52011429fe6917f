"""P3, P5: updates of one row that merge are appended in one request, or none of them is."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

import tique
from tests.sharing.playing import Process, expect_nothing_unfinished, sequencer_of
from tique.commit import batch
from tique.commit.certification import key_hash
from tique.commit.shared import AppendingCommitter
from tique_backends.errors import EngineError
from tique_backends.records import CommitRecord
from tique_backends.sharing import GroupRefusedError

ADD = "UPDATE t SET v = v + 1 WHERE id = 1"


@pytest.fixture
def pair(database):
    with closing(Process(database.url)) as first:
        first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        first.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
        with closing(Process(database.url)) as second:
            yield first, second
        expect_nothing_unfinished(first)


@pytest.fixture
def requests(pair, monkeypatch):
    """What each request to append has, and what happens before it is made."""
    first, _ = pair
    asked, before = [], []
    append = sequencer_of(first).append

    def noted(sequencer, sts, write_sets, commits, *rest, **options):
        if sequencer is first.database.engine.shared:
            asked.append((len(commits), options["whole"]))
            if before:
                before.pop()()
        return append(sequencer, sts, write_sets, commits, *rest, **options)

    monkeypatch.setattr(sequencer_of(first), "append", noted)
    return asked, before


def together(process, *statements):
    """Commit each in a thread of one process, in one group; what each raises."""
    outcomes = [None] * len(statements)

    def commit(number, connection):
        try:
            connection.commit()
        except tique.Error as error:
            outcomes[number] = error

    connections = [process.another() for _ in statements]
    threads = []
    for connection, sql in zip(connections, statements, strict=True):
        connection.execute(sql)
    committer = process.database.committer
    with committer.paused(10):
        for number, connection in enumerate(connections):
            thread = threading.Thread(target=commit, args=(number, connection))
            threads.append(thread)
            thread.start()
            while thread.is_alive() and len(committer._queue) < number + 1:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()
    return outcomes


def values(process):
    return [v for (v,) in process.rows("SELECT v FROM t ORDER BY id")]


def test_one_request(pair, requests):
    first, second = pair
    assert together(first, ADD, ADD, ADD) == [None] * 3
    assert requests[0] == [(3, True)]
    assert values(second) == values(first) == [3, 0]


def test_rows_that_differ_are_apart(pair, requests):
    first, second = pair
    other = ADD.replace("id = 1", "id = 2")
    assert together(first, ADD, other) == [None] * 2
    assert requests[0] == [(2, False)]
    assert values(second) == [1, 1]


@pytest.mark.parametrize("changed", [1, 2])
def test_another_process_comes_between(pair, requests, changed):
    """The first ticket alone would not be refused: it leaves its key to the last."""
    first, second = pair
    asked, before = requests
    before.append(
        lambda: second.commit(f"UPDATE t SET v = v + 10 WHERE id = {changed}")
    )
    assert together(first, ADD, ADD, ADD) == [None] * 3
    expected = [13, 0] if changed == 1 else [3, 10]
    assert values(first) == values(second) == expected
    assert asked == [(3, True)] * (2 if changed == 1 else 1)
    assert not first.database.committer.is_in_doubt


def test_a_row_that_is_gone_meanwhile(pair, requests):
    """P5: nothing of the group is left; each ticket has an outcome of its own."""
    first, second = pair
    requests[1].append(lambda: second.commit("DELETE FROM t WHERE id = 1"))
    outcomes = together(first, ADD, ADD, ADD.replace("id = 1", "id = 2"))
    assert [type(each) for each in outcomes] == [
        tique.SerializationError,
        tique.SerializationError,
        type(None),
    ]
    assert values(first) == values(second) == [1]


def test_groups_that_refuse_each_other_go_apart(pair, requests, monkeypatch):
    """P6: a ticket that was refused often needs none of the others."""
    first, second = pair
    asked, before = requests
    times = batch._REFUSALS_AS_A_WHOLE
    before.extend([lambda: second.commit(ADD)] * times)
    assert together(first, ADD, ADD, ADD) == [None] * 3
    assert values(second) == [3 + times, 0]
    assert asked == [*[(3, True)] * times, *[(1, False)] * 3]


def test_one_that_others_overtake_again_and_again(pair, requests):
    """P6: the error names the row, so that the next attempt reserves it."""
    first, second = pair
    times = AppendingCommitter.most_refusals
    requests[1].extend([lambda: second.commit(ADD)] * times)
    (error,) = together(first, ADD)
    assert isinstance(error, tique.SerializationError)
    assert (error.table, error.key) == ("public.t", (1,))
    assert error.winner
    assert values(first) == [times, 0]


def test_a_process_that_has_followed_a_part(pair):
    """P3: what is computed on the first commit of a group is refused."""
    first, second = pair
    assert together(first, ADD, ADD, ADD) == [None] * 3
    shared = second.database.engine.shared
    last = first.database.timeline.position().cts
    (number,) = [t.id for t in first.database.catalog.by_id().values()]
    key = key_hash(number, (0,), (1,))
    stamps, _ = shared.append(last - 2, [[key]], [CommitRecord(0, 1 << 40, {}, {})])
    assert stamps == [-last]


def test_a_part_of_a_whole_is_refused(pair):
    first, second = pair
    first.commit(ADD)
    last = first.database.timeline.position().cts
    (number,) = [t.id for t in first.database.catalog.by_id().values()]
    key = key_hash(number, (0,), (1,))
    records = [CommitRecord(0, (1 << 40) + n, {}, {}) for n in range(2)]
    shared = second.database.engine.shared
    with pytest.raises(GroupRefusedError) as refused:
        shared.append(last - 1, [[], [key]], records, whole=True)
    assert refused.value.winner == last
    assert isinstance(refused.value, EngineError)
    with closing(second.database.engine.session()) as session:
        found = second.database.engine.find_commit(session, records[0].txid)
    assert found is None

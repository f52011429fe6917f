"""The sequencer inside the server, compiled and not, through SQL."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pymonetdb
import pytest

from tests.effort import patience
from tests.plugins.monetdb import connect_natively
from tique_backends.monetdb.server import MonetDBServer, ServerError
from tique_udfs.monetdb import FUNCTIONS, TEXTS

HOUR = 3_600_000


@pytest.fixture(scope="module", params=["c", "python"])
def kind(request):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIQUE_SEQUENCER", request.param)
        yield request.param


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "server"


@pytest.fixture
def server(kind, folder):
    with MonetDBServer(folder) as server:
        yield server


@pytest.fixture
def connect(server):
    opened = []

    def connect():
        opened.append(connect_natively(server.url))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def install(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE SCHEMA IF NOT EXISTS tique")
    for function in FUNCTIONS:
        cursor.execute(function.definition)


def called(function):
    arguments = ("''" if name in TEXTS else "1" for name in function.parameters)
    return f'"{function.name}"({", ".join(arguments)})'


def asker(connection):
    cursor = connection.cursor()

    def ask(call):
        cursor.execute(f"SELECT tique.{call}")
        ((value,),) = cursor.fetchall()
        return value

    return ask


@pytest.fixture
def ask(connect):
    """Call a function on a server that has recovered at sts 10, txid 100."""
    connection = connect()
    install(connection)
    ask = asker(connection)
    ask("recover(10, 100)")
    return ask


def begin(ask, client):
    return [int(number) for number in ask(f"begin_transaction({client})").split()]


def test_nothing_but_recovery_before_recovery(connect):
    connection = connect()
    install(connection)
    ask = asker(connection)
    for function in FUNCTIONS:
        if function.name in ("incarnation", "recover"):
            continue
        with pytest.raises(pymonetdb.Error, match="recovery has not run"):
            ask(called(function))
    assert ask("recover(0, 0)") == 0
    assert ask("sts()") == 0


def test_a_restart_is_another_incarnation_without_a_memory(ask, server):
    before = ask("incarnation()")
    assert before == ask("incarnation()")
    server.stop()
    server.start()
    with closing(connect_natively(server.url)) as connection:
        again = asker(connection)
        assert again("incarnation()") > before
        with pytest.raises(pymonetdb.Error, match=r"55000.*recovery has not run"):
            again("sts()")


def test_a_life(ask):
    client = ask(f"join_client({HOUR})")
    assert begin(ask, client) == [101, 10]
    assert [ask("sts()"), ask("cts()"), ask("lambda()"), ask("active()")] == [
        *(10, 10, 10, 1)
    ]
    assert [ask(f"next_cts({client})") for _ in range(2)] == [11, 12]
    ask(f"finish({client}, 12)")
    assert ask("sts()") == 10
    assert ask("wait(12, 0)") == 0
    ask(f"finish({client}, 11)")
    assert ask("wait(12, 1000)") == 1
    assert ask("lambda()") == 10
    assert ask(f"advance_transaction({client}, 101, 12)") == 12
    assert ask("lambda()") == 12
    ask(f"end_transaction({client}, 101)")
    assert ask("active()") == 0
    ask(f"leave_client({client})")
    assert ask("clients()") == 0


def test_a_call_is_made_as_often_as_it_is_written(ask, connect):
    client = ask(f"join_client({HOUR})")
    cursor = connect().cursor()
    cursor.execute(f"SELECT a, a FROM (SELECT tique.next_cts({client}) AS a) AS once")
    assert cursor.fetchall() == [(11, 11)]
    cursor.execute(f"SELECT tique.next_cts({client}), tique.next_cts({client})")
    assert sorted(cursor.fetchall()[0]) == [12, 13]


def test_a_dead_client_is_fenced(ask):
    """P6."""
    dead, client = ask("join_client(100)"), ask(f"join_client({HOUR})")
    begin(ask, dead)
    doubtful = ask(f"next_cts({dead})")
    mine = ask(f"next_cts({client})")
    ask(f"finish({client}, {mine})")
    started = time.monotonic()
    assert ask(f"wait({mine}, 1000)") == 0
    assert time.monotonic() - started < patience(0.9)
    assert ask("doubtful()") == doubtful
    assert [ask("clients()"), ask("active()"), ask("sts()")] == [1, 0, 10]
    ask(f"fence({doubtful})")
    assert ask("sts()") == mine
    assert begin(ask, client)[1:] == [mine, doubtful]
    for call in (
        f"renew_client({dead}, {HOUR})",
        f"finish({dead}, {doubtful})",
        f"begin_transaction({dead})",
        f"next_cts({dead})",
    ):
        with pytest.raises(pymonetdb.Error, match=r"08006.*fenced"):
            ask(call)


def test_certification(ask):
    """P3: several in one statement; the winner's timestamp where a key is taken."""
    client = ask(f"join_client({HOUR})")
    old, new = begin(ask, client), begin(ask, client)
    one, two, three = (f"{number:032x}" for number in (1, 2, 3))

    def certify(transaction, *keys):
        _, sts = transaction
        return f"certify({client}, {sts}, '{''.join(keys)}')"

    assert ask(certify(new, one, two)) == 11
    assert ask(certify(old, three, one)) == -11
    ask(f"abort({client}, 11)")
    assert ask(certify(old, three, one)) == 12
    ask(f"finish({client}, 12)")
    assert ask(certify(new, two)) == 13
    ask(f"finish({client}, 13)")
    assert ask(certify(begin(ask, client))) == 14
    ask(f"finish({client}, 14)")
    assert [ask("sts()"), ask("keys()")] == [14, 5]
    assert ask(certify(begin(ask, client), *[f"{n:032x}" for n in range(5000)])) == 15


def test_a_lease_is_renewed(ask):
    client = ask("join_client(300)")
    for _ in range(6):
        time.sleep(0.1)
        ask(f"renew_client({client}, 300)")
    begin(ask, client)


SENSELESS = [
    "recover(5, 200)",
    "recover(-1, 200)",
    "recover(NULL, 200)",
    "join_client(-1)",
    "join_client(NULL)",
    "begin_transaction(NULL)",
    "begin_transaction(0)",
    "next_cts(1)",
    "finish({client}, 99)",
    "finish({client}, NULL)",
    "end_transaction({client}, 999)",
    "certify({client}, 99, '')",
    "certify({client}, -1, '')",
    "certify({client}, 10, NULL)",
    "certify({client}, 10, 'zz')",
    "certify({client}, 10, 'ABCDEF0123456789ABCDEF0123456789')",
    "certify({client}, 10, '0123')",
    "certify({client}, 10, '012')",
    "certify({client}, NULL, '')",
    "certify_as({client}, 5, 10, '')",
    "certify_as({client}, 0, 10, 'zz')",
    "certify_as({client}, 0, 99, '')",
    "certify_as(1, 0, 10, '')",
    "open_locker(1)",
    "close_locker({client}, 1)",
    "interrupt_locker({client}, 1)",
    "lock({client}, 1, 2, 0, '')",
    "lock({client}, 1, 0, -1, '')",
    "lock({client}, 1, 0, 0, '0123')",
    "lock({client}, 1, 0, 0, NULL)",
    "lock(1, 1, 0, 0, '')",
    "unlock({client}, 1, 0, '')",
    "unlock({client}, 1, NULL, '')",
    "unlock({client}, 1, 0, 'ABCDEF0123456789')",
    "abort({client}, 99)",
    "end_transaction({client}, NULL)",
    "advance_transaction({client}, 999, 12)",
    "renew_client({client}, -1)",
    "wait(NULL, 10)",
    "wait(1, -1)",
    "wait(1, NULL)",
    "fence(1)",
    "fence(NULL)",
]


def test_what_makes_no_sense_is_an_error_and_changes_nothing(ask):
    client = ask(f"join_client({HOUR})")
    for call in SENSELESS:
        name = call.partition("(")[0]
        with pytest.raises(pymonetdb.Error, match=f"tique.{name}"):
            ask(call.format(client=client))
        assert [ask("sts()"), ask("cts()"), ask("active()"), ask("clients()")] == [
            *(10, 10, 0, 1)
        ], call


def test_a_wait_is_a_second_at_most(ask):
    started = time.monotonic()
    assert ask(f"wait(99, {HOUR})") == 0
    assert 0.9 < time.monotonic() - started < patience(3)


def hexadecimal(*numbers):
    return "".join(n.to_bytes(8, "big", signed=True).hex() for n in numbers)


def test_row_locks(ask, connect):
    """P3, P6: a commit says which are in its way; a wait is a second at most."""
    one, two = (ask(f"join_client({HOUR})") for _ in range(2))
    own, others = ask(f"open_locker({one})"), ask(f"open_locker({two})")
    least = -(2**63)

    def lock(client, locker, *numbers, shared=0, milliseconds=0):
        text = hexadecimal(*numbers)
        return f"lock({client}, {locker}, {shared}, {milliseconds}, '{text}')"

    def certify(client, locker, *numbers):
        keys = "".join(f"{hexadecimal(number)}{0:016x}" for number in numbers)
        return f"certify_as({client}, {locker}, 10, '{keys}')"

    assert ask(lock(one, own, 1, least, 2)) == "3"
    assert ask(lock(two, others, 3, 1)) == "1"
    assert ask("locks()") == 4
    assert sorted(ask(certify(two, others, 3, 1, least)).split()) == sorted(
        ["locked", "1", str(least)]
    )
    assert ask(certify(two, 0, 3)) == "locked 3"
    # Earlier releases do not know it: to them it is a commit of just now.
    assert ask(f"certify({two}, 10, '{hexadecimal(1)}{0:016x}')") == -10
    assert ask("cts()") == 10
    assert ask(certify(two, others, 3)) == "11"
    assert ask(certify(one, own, 3, 1)) == "locked 3"
    ask(f"unlock({two}, {others}, 0, '{hexadecimal(3)}')")
    assert ask(certify(one, own, 3, 1)) == "-11"
    started = time.monotonic()
    assert ask(lock(two, others, 1, milliseconds=HOUR)) == "0"
    assert 0.9 < time.monotonic() - started < patience(3)
    other = asker(connect())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other, lock(two, others, 1, milliseconds=1000))
        time.sleep(0.1)
        ask(f"unlock({one}, {own}, 0, '{hexadecimal(1)}')")
        assert waiting.result() == "1"
    assert ask(lock(one, own, 1, milliseconds=1)) == "0"
    assert ask(lock(two, others, 2, milliseconds=1)) == "deadlock"
    ask(f"interrupt_locker({one}, {own})")
    assert ask(lock(one, own, 1, milliseconds=1)) == "interrupted"
    assert ask(lock(one, others)) == "gone"
    ask(f"close_locker({two}, {others})")
    assert ask(lock(one, own, 1, shared=1)) == "1"
    ask(f"leave_client({one})")
    assert ask("locks()") == 0
    with pytest.raises(pymonetdb.Error, match=r"08006.*fenced"):
        ask(lock(one, own, 5))


def test_a_wait_holds_nobody_up(ask, connect):
    client = ask(f"join_client({HOUR})")
    mine = ask(f"next_cts({client})")
    other = asker(connect())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other, f"wait({mine}, 1000)")
        time.sleep(0.1)
        started = time.monotonic()
        ask(f"finish({client}, {mine})")
        assert time.monotonic() - started < patience(0.5)
        assert waiting.result() == 1


def test_an_ordinary_user_may_not_call_it(ask, connect, server):
    """P11: until an administrator grants it, function by function."""
    administrator = connect().cursor()
    administrator.execute("CREATE USER clerk WITH PASSWORD 'x' NAME 'Clerk' SCHEMA sys")
    administrator.execute("GRANT EXECUTE ON FUNCTION tique.sts TO clerk")
    with closing(
        connect_natively(server.url, username="clerk", password="x")
    ) as connection:
        clerk = asker(connection)
        assert clerk("sts()") == 10
        for function in FUNCTIONS:
            if function.name != "sts":
                with pytest.raises(pymonetdb.Error, match="insufficient privileges"):
                    clerk(called(function))


CLIENT = """
import sys
from tests.plugins.monetdb import connect_natively
cursor = connect_natively(sys.argv[1]).cursor()

def ask(call):
    cursor.execute("SELECT tique." + call)
    return cursor.fetchall()[0][0]

client = ask("join_client(2000)")
for _ in range(int(sys.argv[2])):
    ask(f"renew_client({client}, 2000)")
    txid, sts, *fences = map(int, ask(f"begin_transaction({client})").split())
    cts = ask(f"next_cts({client})")
    assert sts < cts
    ask(f"finish({client}, {cts})")
    while not ask(f"wait({cts}, 200)"):
        ask(f"renew_client({client}, 2000)")
        doubtful = ask("doubtful()")
        if doubtful:
            ask(f"fence({doubtful})")
    ask(f"end_transaction({client}, {txid})")
    print(cts, flush=True)
"""


@pytest.mark.slow
def test_processes_share_it_and_some_are_killed(ask, server):
    """P6: the others go on after a death in any step."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(rounds):
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, server.url, str(rounds)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    steady, victims = [start(60) for _ in range(3)], [start(10**6) for _ in range(2)]
    for number, victim in enumerate(victims):
        for _ in range(5 + 7 * number):
            assert victim.stdout.readline()
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    outputs = [process.communicate(timeout=60) for process in steady]
    assert [errors for _, errors in outputs] == [""] * 3
    taken = [int(line) for output, _ in outputs for line in output.split()]
    assert len(set(taken)) == 180
    time.sleep(2.1)
    while doubtful := ask("doubtful()"):
        ask(f"fence({doubtful})")
    assert ask("sts()") == ask("cts()") == ask("lambda()") >= max(taken)
    assert [ask("active()"), ask("clients()")] == [0, 0]


def test_the_sequencer_in_c_is_an_error_where_it_cannot_be_had(folder, monkeypatch):
    monkeypatch.setenv("TIQUE_SEQUENCER", "c")
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(folder.parent / "cache"))
    with pytest.raises(ServerError, match=r"no C compiler"):
        MonetDBServer(folder).start()


def test_without_a_compiler_the_one_in_python_steps_in(folder, monkeypatch):
    monkeypatch.delenv("TIQUE_SEQUENCER", raising=False)
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(folder.parent / "cache"))
    with (
        MonetDBServer(folder) as server,
        closing(connect_natively(server.url)) as connection,
    ):
        install(connection)
        assert asker(connection)("recover(1, 1)") == 1

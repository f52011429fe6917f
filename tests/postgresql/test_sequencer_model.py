"""Every form of PostgreSQL's sequencer behaves like the one in Python."""

import random

import psycopg
import pytest

from tests.postgresql.sequencers import GONE, LONG, REFUSED, packed
from tique_udfs import FencedError, KeyConflictError, SequencerError
from tique_udfs._python import PythonSequencer

STEPS = 400
KEYS = 6
NEVER = 3600.0


class Pair:
    """The same calls to both; their numbers differ by earlier calls."""

    def __init__(self, service, seed):
        self.main = service.main
        self.service = service
        self.chance = random.Random(seed)
        self.model = PythonSequencer("model")
        self.model.recover(sts=service.base, txid=0)
        self.clients = []
        self.txids = [(0, 0)]
        self.held = (self.main.clients(), self.main.active())

    def both(self, ours, theirs):
        """Both answers, or None if both refuse alike."""
        try:
            expected = theirs()
        except SequencerError as error:
            refusal = error
        else:
            return ours(), expected
        if isinstance(refusal, KeyConflictError):
            # It may name a later one of several that are in the way.
            assert -self.model.cts() <= ours() <= -refusal.winner
        else:
            with pytest.raises(psycopg.Error) as caught:
                ours()
            is_gone = isinstance(refusal, FencedError)
            assert caught.value.sqlstate == (GONE if is_gone else REFUSED)
        return None

    def same(self, ours, theirs):
        if answers := self.both(ours, theirs):
            assert answers[0] == answers[1]

    def stamp(self):
        # Earlier timestamps are not known to both.
        first = max(self.service.base, self.model.sts() - 3)
        return self.chance.randint(first, self.model.cts() + 1)

    def join(self):
        self.clients.append((self.service.join(LONG), self.model.join(NEVER)))

    def leave(self):
        client, twin = self.chance.choice(self.clients)
        self.both(
            lambda: self.main.leave_client(client), lambda: self.model.leave(twin)
        )

    def begin(self):
        client, twin = self.chance.choice(self.clients)
        begun = self.both(
            lambda: self.main.row("begin_transaction", client),
            lambda: self.model.begin_for(twin),
        )
        if begun:
            (txid, sts), (twin, expected) = begun
            assert sts == expected
            self.txids.append((txid, twin))

    def advance(self):
        client, twin = self.chance.choice(self.clients)
        txid, its = self.chance.choice(self.txids)
        sts = self.stamp()
        self.both(
            lambda: self.main.advance_transaction(client, txid, sts),
            lambda: self.model.advance_for(twin, its, sts),
        )

    def end(self):
        client, twin = self.chance.choice(self.clients)
        txid, its = self.chance.choice(self.txids)
        self.both(
            lambda: self.main.end_transaction(client, txid),
            lambda: self.model.end_for(twin, its),
        )

    def certify(self):
        client, twin = self.chance.choice(self.clients)
        after = self.stamp()
        keys = self.chance.sample(range(KEYS), self.chance.randrange(3))

        def commit():
            cts = self.model.certify_for(twin, after, [packed(key) for key in keys])
            self.model.finish_for(twin, cts)
            return cts

        self.same(lambda: self.main.certify(client, after, packed(*keys)), commit)

    def next_cts(self):
        client, twin = self.chance.choice(self.clients)
        self.same(
            lambda: self.main.next_cts(client), lambda: self.model.next_cts_for(twin)
        )

    def finish(self):
        client, twin = self.chance.choice(self.clients)
        cts = self.stamp()
        name = self.chance.choice(["finish", "abort"])

        def theirs():
            getattr(self.model, f"{name}_for")(twin, cts)
            return self.model.sts()

        self.same(lambda: getattr(self.main, name)(client, cts), theirs)

    def fence(self):
        cts = self.chance.choice([self.stamp() + 1, self.model.doubtful()])
        self.both(lambda: self.main.fence(cts), lambda: self.model.fence(cts))

    def look(self):
        main, model = self.main, self.model
        assert main.sts() == model.sts()
        assert main.cts() == model.cts()
        assert main.doubtful() == model.doubtful()
        assert main.stable() == model.stable()
        # Clients of earlier tests go when their leases run out, and none comes.
        held = (
            main.clients() - model.clients(),
            main.active() - len(model.active()),
        )
        assert (0, 0) <= held <= self.held
        assert 0 <= held[1] <= self.held[1]
        self.held = held
        cts = self.stamp()
        assert main.wait(cts, 0) == model.wait(cts, 0)
        client, twin = self.chance.choice(self.clients)
        answers = self.both(
            lambda: main.row("sts_for", client),
            lambda: (model.sts_for(twin), model.fences()),
        )
        if answers:
            (sts, fences), (expected, known) = answers
            assert sts == expected
            assert [cts for cts in fences if cts > self.service.base] == known


CALLS = {
    Pair.join: 2,
    Pair.leave: 1,
    Pair.begin: 3,
    Pair.advance: 3,
    Pair.end: 3,
    Pair.certify: 10,
    Pair.next_cts: 2,
    Pair.finish: 8,
    Pair.fence: 4,
    Pair.look: 4,
}


@pytest.mark.parametrize("seed", range(6))
def test_random_calls(service, seed):
    pair = Pair(service, seed)
    pair.join()
    for call in pair.chance.choices(list(CALLS), list(CALLS.values()), k=STEPS):
        call(pair)
    pair.look()

/*
 * The sequencer: hands out transaction ids and timestamps, for any engine.
 *
 * Words
 *   txid    identifies a transaction; never reused
 *   cts     commit timestamp; handed out densely: 1, 2, 3, ...
 *   sts     every timestamp <= sts is finished, that is committed or aborted.
 *           A transaction that begins reads the versions with cts <= sts
 *   lambda  the smallest sts of any active transaction, else sts itself
 *
 * sts advances over the contiguous prefix of finished timestamps. Finishing is
 * a bit in a ring, in any order, so no transaction waits for its turn and a
 * timestamp whose commit failed leaves no hole. The ring bounds how far cts may
 * run ahead of sts: beyond TIQUE_RING_CAPACITY timestamps tique_next_cts refuses.
 *
 * Why no checkpoint overtakes a snapshot (promise P7)
 *   tique_begin reads sts and registers the snapshot under the sequencer's
 *   mutex, and tique_lambda reads the table under the same mutex, so a
 *   transaction is either registered before lambda is read, and then
 *   lambda <= its sts; or registered afterwards, and then its sts is the sts of
 *   a later moment, and sts never decreases, so lambda <= its sts again. The
 *   same holds for tique_refresh, which moves a snapshot forward only. Hence a
 *   value that tique_lambda has returned is a lower bound of every snapshot that
 *   is active or will ever begin, for as long as the sequencer lives, and
 *   lambda itself never decreases.
 *
 * Why lambda is cheap
 *   sts never decreases, so snapshots are registered in ascending order of sts:
 *   a list that is appended to at one end is sorted, and lambda is its head.
 *
 * Clients
 *   Where several processes share a sequencer (a server's), each is a client with a
 *   lease. The snapshots that it begins and the timestamps that it takes belong to
 *   it. A client whose lease has run out is gone for good: its snapshots are dropped,
 *   and every call in its name is refused with TIQUE_FENCED from then on, however
 *   long it slept between two steps of a commit (promise P6). Its id is a random
 *   number, so that no client can act in another's name (P11).
 *
 *   A timestamp that it took and did not finish is *doubtful*: its versions and its
 *   commit record may be there or not, and may still arrive with a delayed statement.
 *   sts stops in front of it until a process has recorded durably that it counts for
 *   nothing and then calls tique_fence. That order makes fencing safe: before the
 *   durable record, no snapshot covers the timestamp; after it, recovery and every
 *   reader leave the timestamp out (tique_fences tells them which), whatever versions
 *   it has. The client itself cannot have been told that it committed, since it never
 *   finished.
 *
 *   A client that is not trusted to finish soon (P11) takes its timestamp with a time
 *   limit (tique_next_cts_within), one at a time. After that time the timestamp is
 *   doubtful, and nothing else changes: the client keeps its lease and its snapshots, on
 *   which it relies for reads until it is told otherwise. The client must not believe
 *   that it committed, so the sequencer remembers the timestamp with the client and
 *   refuses to finish it, also when sts has passed it long since. A doubtful timestamp
 *   leaves that state only through a fence: a client that was refused can tell for
 *   certain that no snapshot will ever see its versions.
 *
 *   A client asks for its commit timestamp with the write set: tique_certify_for
 *   refuses it when a key was committed, or is being committed, after `sts`, up to
 *   which the client has certified it by itself. Otherwise it takes the timestamp and
 *   records the keys, all under the mutex (promise P3: later certifications find them).
 *   This is certification in memory; the definition is the query over the versions.
 *   A key may have a mode (writes.c): in shared mode it conflicts with the same key in
 *   exclusive mode only, as a row that references another one does with the deletion of
 *   that (paper, section 2.3.4).
 *   Keys are 16 bytes, a hash of the client's key: two that collide cost an unnecessary
 *   abort, and nothing else. Clients choose them, so their table is under a hash with
 *   a secret of the sequencer's own: keys that share a bucket cannot be chosen
 *   beforehand. Many writes in a bucket, of one key or of keys that a client has found
 *   out, can still be in the way of another key there, for a client whose `sts` is old.
 *   After TIQUE_PROBES of them it is refused as by the newest one, and asks again when
 *   it has caught up to there.
 *
 * Garbage collection of keys
 *   Keys are recorded in a log, in the order of their timestamps, of which the last
 *   TIQUE_KEY_CAPACITY are remembered. The *barrier* is a timestamp: the log has the
 *   keys of every transaction that was committed, or is being committed, after it.
 *   Older keys may be missing, so certification refuses every write set that its
 *   client has certified up to an older timestamp only. That client catches up, which
 *   takes the missing ones in, and asks again. So a write set that is let through was
 *   compared with all keys later than its `sts`, whatever was forgotten; and one old
 *   snapshot holds no memory. Raising the barrier is always right. It is raised
 *
 *   - to the timestamp at which tique_recover continues: earlier commits are in the
 *     durable state.
 *   - to the last timestamp that is forgotten, when the log is full. Only timestamps
 *     that sts covers are forgotten, so that no client has to wait: one that catches up
 *     is let through at once. It is the oldest of very many writes, and a client that
 *     catches up at all knows it long since.
 *   - to the timestamp of a write set for which this makes no room, since it is
 *     larger than the log or the log is full of commits under way. It is certified
 *     like any other, but none of its keys are recorded. A full log refuses no client
 *     for good, then; it makes others wait for one commit.
 *   - to a timestamp that a client takes without a write set (tique_next_cts_for),
 *     because its transaction's write set is unknown. Transactions that were let
 *     through before have smaller timestamps; when sts covers all of these, its owner
 *     is the only client that commits. If it dies its timestamp is fenced like any
 *     other, and no client waits for it.
 *
 *   An abort, or a fence, takes back the writes of its timestamp: they stay in the log
 *   with a mark, and the next search of a bucket that meets one unlinks it there.
 *   A key's commit before is still in the log then, or the barrier covers it. The barrier
 *   itself is not taken back: it lets every client through that has caught up.
 *
 * Row locks
 *   A client's transaction that locks rows is a *locker*. A lock has a number: the first
 *   eight bytes of the row's key. One locker has a number alone, or several share it;
 *   one may have it in both modes. Locks decide who waits, never what may commit.
 *
 *   A commit of a key that another locker has locked, in whatever mode, is refused with
 *   TIQUE_LOCKED, and takes no timestamp. That look, the timestamp, and each grant of a
 *   lock are made under the mutex, and so in one order: a commit either sees the lock; or
 *   it has its timestamp before the lock is granted, so that a locker that then asks for
 *   tique_cts waits for it (P2, P3). It has to be that way round: a locker that asks
 *   before it has the lock misses the commits that come between.
 *
 *   Locks go with their client: before they are looked at, those of clients that have
 *   left, or whose lease ran out, are dropped (P6). A client that wakes up later commits
 *   nothing that it decided under them, because it is fenced. A locker is found only by
 *   its client's number, which cannot be guessed (P11).
 *
 *   A lock is given to those that wait in the order in which they came, but for those
 *   that can share it at once, and for one that shares it and wants it alone, for which
 *   all others wait. None hands a lock on: a thread that waits looks by itself when it is
 *   woken, so that nothing is given to one that is gone. A wait that is over by its time
 *   keeps its place until the locker does anything else than to go on waiting: a server
 *   bounds each call and its caller asks again.
 *
 *   A locker waits for the others that have the number, and for those that come before
 *   it. A wait that would close a circle is refused as it begins, with TIQUE_DEADLOCK.
 *   A grant closes none, since its locker does not wait any more.
 *
 * Bounds
 *   A sequencer is one block of memory of fixed size, whatever clients do: nothing is
 *   allocated after tique_open. Where a table is full the call is refused and nothing
 *   was changed. Nothing points inside the block (state.h).
 *
 *   The work under the mutex is bounded too, since it cannot be interrupted (P6). A
 *   call does at most TIQUE_PROBES steps for each of TIQUE_KEYS_PER_CALL keys, or one
 *   pass over a table; many leases that run out together are one pass. A search for a
 *   circle, and a look for locks, pass over the lockers once for each locker or key at
 *   the most. One client has
 *   no more snapshots and barriers than its share, and one role no more clients.
 *
 * Leases
 *   They run on the monotonic clock, and every call checks them first; a thread that
 *   waits wakes up when the next lease runs out. So no thread of the server's own is
 *   needed.
 *
 * Handles are numbers and not pointers: one that was closed is refused with
 * TIQUE_CLOSED for ever after. Every function may be called from any thread.
 * No mutex is held when a function has returned, and none while a thread waits.
 */
#ifndef TIQUE_SEQUENCER_H
#define TIQUE_SEQUENCER_H

#include <stdint.h>

#ifndef TIQUE_EXPORT
#define TIQUE_EXPORT __attribute__((visibility("default")))
#endif

/* Timestamps that may be handed out and not yet covered by sts. */
#define TIQUE_RING_CAPACITY 65536

/* Room for so many of each at a time; tests build with less. */
#ifndef TIQUE_SNAPSHOT_CAPACITY
#define TIQUE_SNAPSHOT_CAPACITY 65536
#endif
#ifndef TIQUE_CLIENT_CAPACITY
#define TIQUE_CLIENT_CAPACITY 4096
#endif
#ifndef TIQUE_FENCE_CAPACITY
#define TIQUE_FENCE_CAPACITY 65536
#endif
#ifndef TIQUE_KEY_CAPACITY
#define TIQUE_KEY_CAPACITY 262144
#endif
#ifndef TIQUE_LOCKER_CAPACITY
#define TIQUE_LOCKER_CAPACITY 4096
#endif
#ifndef TIQUE_LOCK_CAPACITY
#define TIQUE_LOCK_CAPACITY 65536
#endif

/* The shares of one client, one call and one role: the rest is for the others. */
#define TIQUE_SNAPSHOTS_PER_CLIENT 256
#define TIQUE_BARRIERS_PER_CLIENT 16
#define TIQUE_KEYS_PER_CALL 65536
#define TIQUE_LOCKERS_PER_CLIENT 256
#define TIQUE_LOCKS_PER_CLIENT 16384
#define TIQUE_LOCKS_PER_LOCKER 1024
#define TIQUE_ROLE_SHARE 1024 /* clients */

/* Results below zero; all that functions hand out is zero or more. */
enum tique_status {
	TIQUE_OK = 0,
	TIQUE_CLOSED = -1,    /* no open sequencer has that handle */
	TIQUE_NO_MEMORY = -2, /* nothing was changed */
	TIQUE_RING_FULL = -3, /* TIQUE_RING_CAPACITY timestamps are unfinished */
	TIQUE_UNKNOWN = -4,   /* never handed out, or no longer active */
	TIQUE_IN_USE = -5,    /* transactions are active or commits under way */
	TIQUE_BACKWARDS = -6, /* would hand out a number for the second time */
	TIQUE_FENCED = -7,    /* the client's lease has run out */
	TIQUE_CONFLICT = -8,  /* another transaction committed a key first */
	TIQUE_SNAPSHOTS_FULL = -9,
	TIQUE_CLIENTS_FULL = -10,
	TIQUE_FENCES_FULL = -11,
	TIQUE_KEYS_TOO_MANY = -12,    /* more than TIQUE_KEYS_PER_CALL */
	TIQUE_CLIENT_TOO_MUCH = -13,  /* more than one client may have */
	TIQUE_ROLE_TOO_MUCH = -14,    /* more clients than one role may have */
	TIQUE_OVERDUE = -15,          /* not finished within its time */
	TIQUE_LOCKS_FULL = -16,
	TIQUE_LOCKED = -17,           /* another transaction has locked a key */
	TIQUE_DEADLOCK = -18,         /* the wait would never end */
	TIQUE_INTERRUPTED = -19       /* the wait was (tique_interrupt_locker) */
};

typedef int64_t tique_handle;
typedef int64_t tique_client; /* greater than zero */
typedef int64_t tique_locker; /* greater than zero */

struct tique_transaction {
	int64_t txid; /* a tique_status when the call failed */
	int64_t sts;
};

struct tique_key {
	uint8_t bytes[16];
};

struct tique_snapshot {
	int64_t txid;
	int64_t sts;
	int64_t age_nanoseconds; /* since the snapshot was taken or refreshed */
};

/* A new sequencer with sts, cts and txid at 0, or TIQUE_NO_MEMORY. */
TIQUE_EXPORT tique_handle tique_open(void);

/* Wakes every waiter with TIQUE_CLOSED. */
TIQUE_EXPORT int tique_close(tique_handle handle);

/* Continues behind a durable state: the next cts is sts + 1, the next txid
 * txid + 1. Refused while anything is active, and backwards always. */
TIQUE_EXPORT int tique_recover(tique_handle handle, int64_t sts, int64_t txid);

/* From now on no transaction id up to `txid` is handed out. */
TIQUE_EXPORT int tique_skip_txids(tique_handle handle, int64_t txid);

TIQUE_EXPORT struct tique_transaction tique_begin(tique_handle handle);

/* Registers txid anew at the current sts and returns that. */
TIQUE_EXPORT int64_t tique_refresh(tique_handle handle, int64_t txid);

/* Ending a transaction twice is the same as ending it once. */
TIQUE_EXPORT int tique_end(tique_handle handle, int64_t txid);

TIQUE_EXPORT int64_t tique_next_cts(tique_handle handle);

/* Finishing a timestamp twice is the same as finishing it once. */
TIQUE_EXPORT int tique_finish(tique_handle handle, int64_t cts);

TIQUE_EXPORT int64_t tique_sts(tique_handle handle);
TIQUE_EXPORT int64_t tique_cts(tique_handle handle);
TIQUE_EXPORT int64_t tique_lambda(tique_handle handle);
TIQUE_EXPORT int64_t tique_active_count(tique_handle handle);

/* Copies the oldest `capacity` snapshots, oldest first; returns how many are
 * active in all. */
TIQUE_EXPORT int64_t tique_active(tique_handle handle,
                                  struct tique_snapshot *snapshots,
                                  int64_t capacity);

/* Waits until sts >= cts: 1, or 0 when `nanoseconds` have passed first or a
 * doubtful timestamp stands in the way (tique_doubtful). */
TIQUE_EXPORT int tique_wait(tique_handle handle, int64_t cts,
                            int64_t nanoseconds);

/* A new client whose lease lasts that long; it is renewed from now on. */
TIQUE_EXPORT tique_client tique_join(tique_handle handle, int64_t nanoseconds);
TIQUE_EXPORT int tique_renew(tique_handle handle, tique_client client,
                             int64_t nanoseconds);

/* As tique_join, for a role (not 0) that may have TIQUE_ROLE_SHARE clients. */
TIQUE_EXPORT tique_client tique_join_as(tique_handle handle, int64_t nanoseconds,
                                        int64_t role);

/* As if the lease had run out. */
TIQUE_EXPORT int tique_leave(tique_handle handle, tique_client client);

/* The functions above, in a client's name: TIQUE_FENCED when it is gone, and
 * TIQUE_UNKNOWN for a transaction or timestamp of another client. */
TIQUE_EXPORT struct tique_transaction tique_begin_for(tique_handle handle,
                                                      tique_client client);
TIQUE_EXPORT int64_t tique_advance_for(tique_handle handle, tique_client client,
                                       int64_t txid, int64_t sts);
TIQUE_EXPORT int tique_end_for(tique_handle handle, tique_client client,
                               int64_t txid);
TIQUE_EXPORT int64_t tique_sts_for(tique_handle handle, tique_client client);
TIQUE_EXPORT int tique_finish_for(tique_handle handle, tique_client client,
                                  int64_t cts);

/* As tique_next_cts, and the barrier is raised to it. Refused while the client has
 * TIQUE_BARRIERS_PER_CLIENT timestamps to finish: each has to be fenced if it goes. */
TIQUE_EXPORT int64_t tique_next_cts_for(tique_handle handle,
                                        tique_client client);

/* As tique_next_cts_for, for a client that has no timestamp to finish. If it does not
 * finish this one in time, the timestamp is doubtful, and TIQUE_OVERDUE for the
 * client. */
TIQUE_EXPORT int64_t tique_next_cts_within(tique_handle handle,
                                           tique_client client,
                                           int64_t nanoseconds);

/* 1 if the client has that timestamp to finish, else 0. */
TIQUE_EXPORT int tique_holds(tique_handle handle, tique_client client,
                             int64_t cts);

/* The commit timestamp of a transaction that its client has certified up to `sts` by
 * itself; or TIQUE_CONFLICT, and in *winner the other transaction's timestamp, or the
 * barrier. Or TIQUE_LOCKED, if others than the locker (0: none) have locked a key: then
 * the numbers are in `locked`, which has room for so many, and *winner is their count. */
TIQUE_EXPORT int64_t tique_certify_for(tique_handle handle, tique_client client,
                                       tique_locker locker, int64_t sts,
                                       const struct tique_key *keys,
                                       int64_t count, int64_t *winner,
                                       int64_t *locked, int64_t room);

/* A new owner of row locks; they go when it is closed, or its client goes. */
TIQUE_EXPORT tique_locker tique_open_locker(tique_handle handle,
                                            tique_client client);
TIQUE_EXPORT int tique_close_locker(tique_handle handle, tique_client client,
                                    tique_locker locker);

/* Locks as many of the first numbers as are free; returns how many that are. With a time
 * there is one number, and it waits that long for it: TIQUE_DEADLOCK, TIQUE_INTERRUPTED,
 * also by another call for the locker. What the locker has already is free. */
TIQUE_EXPORT int64_t tique_lock(tique_handle handle, tique_client client,
                                tique_locker locker, const int64_t *numbers,
                                int64_t count, int shared, int64_t nanoseconds);

/* Gives numbers back that it has in this mode; passes over those that it has not. */
TIQUE_EXPORT int tique_unlock(tique_handle handle, tique_client client,
                              tique_locker locker, const int64_t *numbers,
                              int64_t count, int shared);

/* Ends the locker's wait, if it waits, from any thread. */
TIQUE_EXPORT int tique_interrupt_locker(tique_handle handle, tique_client client,
                                        tique_locker locker);

/* Copies the numbers, `room` at the most, that a locker has; returns how many. */
TIQUE_EXPORT int64_t tique_locked(tique_handle handle, const int64_t *numbers,
                                  int64_t count, int64_t *locked, int64_t room);

/* The number of locks that are held. */
TIQUE_EXPORT int64_t tique_lock_count(tique_handle handle);

/* Finishes a timestamp whose transaction did not commit; none of its versions may
 * be there. */
TIQUE_EXPORT int tique_abort_for(tique_handle handle, tique_client client,
                                 int64_t cts);

/* The number of keys that are remembered, each as often as it was recorded. */
TIQUE_EXPORT int64_t tique_key_count(tique_handle handle);

TIQUE_EXPORT int64_t tique_client_count(tique_handle handle);

/* The smallest doubtful timestamp, or 0. */
TIQUE_EXPORT int64_t tique_doubtful(tique_handle handle);

/* Copies the smallest `capacity` doubtful timestamps in ascending order; returns how
 * many there are. */
TIQUE_EXPORT int64_t tique_doubts(tique_handle handle, int64_t *stamps,
                                  int64_t capacity);

/* Finishes a doubtful timestamp, after its fence was made durable. Fencing one twice
 * is the same as fencing it once; TIQUE_IN_USE if it is not doubtful. */
TIQUE_EXPORT int tique_fence(tique_handle handle, int64_t cts);

/* Copies the smallest `capacity` fenced timestamps in ascending order; returns
 * how many there are. */
TIQUE_EXPORT int64_t tique_fences(tique_handle handle, int64_t *fences,
                                  int64_t capacity);

/* Drops all fences up to a timestamp, when their versions are gone and no more can
 * come; returns how many. */
TIQUE_EXPORT int64_t tique_forget_fences(tique_handle handle, int64_t until);

#endif

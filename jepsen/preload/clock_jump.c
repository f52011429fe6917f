/* Preloaded into a client: its wall clock is wrong.
 *
 * By how much, in nanoseconds, is the first number in the file that JEPSEN_CLOCK_JUMP
 * names. CLOCK_MONOTONIC stays as it is: no program can set it, so that none has to
 * bear its jumps, and the client's notes are stamped with it.
 */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "shared.h"

int clock_gettime(clockid_t clock, struct timespec *time)
{
    long failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t now = time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
        now += shared_number("JEPSEN_CLOCK_JUMP");
        time->tv_sec = now / 1000000000;
        time->tv_nsec = now % 1000000000;
    }
    return (int)failed;
}

int gettimeofday(struct timeval *time, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

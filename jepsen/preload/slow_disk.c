/* Preloaded into a server: calls that wait for the disk wait longer.
 *
 * How long, in nanoseconds, is the first number in the file that JEPSEN_SLOW_DISK names,
 * which others map and write while this runs. The write itself is handed on.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "shared.h"

static void wait_longer(void)
{
    int64_t nanoseconds = shared_number("JEPSEN_SLOW_DISK");
    if (nanoseconds > 0) {
        struct timespec pause = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        nanosleep(&pause, NULL);
    }
}

int fsync(int file)
{
    wait_longer();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file)
{
    wait_longer();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int msync(void *start, size_t length, int flags)
{
    wait_longer();
    return ((int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "msync"))(start, length, flags);
}

/* A number in a file that another process writes. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t shared_number(const char *variable)
{
    static _Atomic(volatile int64_t *) mapped;
    static int64_t nothing;
    volatile int64_t *number = mapped;
    if (!number) {
        const char *path = getenv(variable);
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *found = MAP_FAILED;
        if (file >= 0) {
            found = mmap(NULL, sizeof nothing, PROT_READ, MAP_SHARED, file, 0);
            close(file);
        }
        mapped = number = found == MAP_FAILED ? &nothing : found;
    }
    return *number;
}

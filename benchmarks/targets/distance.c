/* Preloaded into a server that is to seem further away.
 *
 * A message that reaches it in one piece is handed to it TIQUE_DISTANCE_US microseconds
 * late. It sleeps meanwhile: unlike a relay in between, this takes no CPU time from the
 * measured processes. A piece that fills the reader's buffer is followed by more of the
 * same message, and only the last piece waits. The server's replies are not held up, so
 * that a round trip has one such wait.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

typedef ssize_t receiver(int, void *, size_t, int);

static receiver *receive;
static struct timespec distance;

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("TIQUE_DISTANCE_US");
    long microseconds = text ? atol(text) : 0;

    distance.tv_sec = microseconds / 1000000;
    distance.tv_nsec = microseconds % 1000000 * 1000;
    receive = (receiver *)dlsym(RTLD_NEXT, "recv");
}

ssize_t recv(int socket, void *buffer, size_t size, int flags)
{
    ssize_t received = receive(socket, buffer, size, flags);

    if (received > 0 && (size_t)received < size) {
        struct timespec left = distance;

        /* A signal must not bring it nearer. */
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
            ;
        errno = 0;
    }
    return received;
}

/* Tells the service manager how the program is: sd_notify(3), without its library. */
#include "system/notify.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum { USEC = 1000000, NSEC_IN_USEC = 1000 };

void zovn_notify(const char *state) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, length);
    if (*path == '@') /* an abstract address begins with a zero, and has none at its end */
        address.sun_path[0] = 0;
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file < 0)
        return;
    sendto(file, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
           (const struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(file);
}

/* Return a positive number that an environment variable has, or 0. */
static long number_of(const char *name) {
    const char *text = getenv(name);
    long number = text ? strtol(text, NULL, 10) : 0;
    return number > 0 ? number : 0;
}

int zovn_watchdog_open(void) {
    long usec = number_of("WATCHDOG_USEC") / 2, process = number_of("WATCHDOG_PID");
    if (!usec || (process && process != getpid()))
        return -1;
    const struct timespec half = {usec / USEC, usec % USEC * NSEC_IN_USEC};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    timerfd_settime(timer, 0, &(struct itimerspec){half, half}, NULL);
    return timer;
}

void zovn_watchdog_feed(int timer) {
    uint64_t times;
    if (read(timer, &times, sizeof times) == sizeof times)
        zovn_notify("WATCHDOG=1");
}

/* Writes lines to standard error without waiting. */
#include "system/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };
static const char PREFIX[] = "zovn-switch: ";

/* The file may be shared with others, so it is not made non-blocking. */
static void write_line(const char *line, size_t length) {
    struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool sent = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    if (!sent && errno == ENOTSOCK && poll(&error, 1, 0) == 1 && (error.revents & POLLOUT)) {
        ssize_t written = write(STDERR_FILENO, line, length);
        (void)written; /* there is no other way to report it */
    }
}

void zovn_say(const char *format, ...) {
    char line[LINE_BYTES];
    size_t at = sizeof PREFIX - 1, room = sizeof line - sizeof PREFIX;
    memcpy(line, PREFIX, at);
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line + at, room, format, values);
    va_end(values);
    if (length > 0)
        at += (size_t)length < room ? (size_t)length : room - 1;
    line[at++] = '\n';
    write_line(line, at);
}

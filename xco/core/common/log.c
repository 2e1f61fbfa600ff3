// Writes lines to standard error without waiting.
#include "common/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SAID_BYTES 512

static const char *program = "xco";

void xco_log_name(const char *name) {
    program = name;
}

// Drops a line if the pipe is full: gates do not wait for the reader of the log. The file may be
// shared, so this does not make it non-blocking.
static void write_line(const char *line, size_t length) {
    struct pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool sent = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    if (!sent && errno == ENOTSOCK && poll(&place, 1, 0) == 1 && (place.revents & POLLOUT) != 0) {
        ssize_t written = write(STDERR_FILENO, line, length);
        (void)written; // no way left to report it
    }
}

void xco_say(const char *format, ...) {
    char line[SAID_BYTES];
    size_t whole = (size_t)snprintf(line, sizeof line / 2, "%s: ", program);
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line + whole, sizeof line - 1 - whole, format, values);
    va_end(values);
    whole += length < 0 ? 0 : (size_t)length;
    whole = whole < sizeof line - 1 ? whole : sizeof line - 2;
    line[whole] = '\n';
    write_line(line, whole + 1);
}

/* Serves the control socket, one line of one client at a time. */
#include "program/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "system/log.h"
#include "system/notify.h"
#include "system/socket.h"

enum { LISTENER, SIGNALS, WATCHDOG, TICK, FIRST_CLIENT };
enum { BACKLOG = 128 };

static int open_tick(void) {
    const struct itimerspec second = {{.tv_sec = 1}, {.tv_sec = 1}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer >= 0)
        timerfd_settime(timer, 0, &second, NULL);
    return timer;
}

static void tick(struct zovn_control *control) {
    uint64_t times;
    if (read(control->tick, &times, sizeof times) > 0)
        zovn_ports_tick(control->ports);
}

static const char *listen_at(struct zovn_control *control, int64_t group) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, control->path, strlen(control->path) + 1);
    control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = zovn_socket_mask(group);
    int bound = bind(control->listener, (const struct sockaddr *)&address, sizeof address);
    umask(before);
    if (bound < 0 || listen(control->listener, BACKLOG) < 0)
        return strerror(errno);
    return zovn_socket_give(control->path, group);
}

const char *zovn_control_open(struct zovn_control *control, const char *path, int64_t group,
                              struct zovn_ports *ports, int signals) {
    *control =
        (struct zovn_control){.ports = ports, .listener = -1, .signals = signals, .path = path};
    control->watchdog = zovn_watchdog_open();
    control->tick = open_tick();
    for (uint32_t i = 0; i < ZOVN_CLIENTS; i++)
        control->clients[i].file = -1;
    const char *problem = zovn_socket_clear(path);
    return problem ? problem : listen_at(control, group);
}

static void hang_up(struct zovn_client *client) {
    close(client->file);
    client->file = -1;
}

static void take(struct zovn_control *control) {
    int file = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (uint32_t i = 0; file >= 0 && i < ZOVN_CLIENTS; i++) {
        struct zovn_client *client = &control->clients[i];
        if (client->file < 0) {
            client->file = file;
            client->filled = 0;
            return;
        }
    }
    if (file >= 0)
        close(file);
}

/* A client that does not read its answer loses its connection: no other waits for it. */
static bool answer(struct zovn_control *control, struct zovn_client *client) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (!stream)
        return true;
    bool goes_on = zovn_command(control->ports, client->line, stream);
    fclose(stream);
    if (send(client->file, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length)
        hang_up(client);
    free(text);
    return goes_on;
}

/* Answer each line that is whole. */
static bool answer_lines(struct zovn_control *control, struct zovn_client *client) {
    for (char *end; client->file >= 0 && (end = memchr(client->line, '\n', client->filled));) {
        *end = 0;
        size_t used = (size_t)(end + 1 - client->line);
        bool goes_on = answer(control, client);
        client->filled -= used;
        memmove(client->line, client->line + used, client->filled);
        if (!goes_on)
            return false;
    }
    if (client->file >= 0 && client->filled == sizeof client->line)
        hang_up(client);
    return true;
}

static bool hear(struct zovn_control *control, struct zovn_client *client) {
    ssize_t got =
        recv(client->file, client->line + client->filled, sizeof client->line - client->filled, 0);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            hang_up(client);
        return true;
    }
    client->filled += (size_t)got;
    return answer_lines(control, client);
}

/* All forwarding threads have to answer: that this one works does not move a frame. */
static void feed_watchdog(struct zovn_control *control) {
    uint64_t missed;
    zovn_forwarder_naps(control->ports->forwarder, &missed);
    zovn_watchdog_feed(control->watchdog);
}

static bool serve(struct zovn_control *control, const struct pollfd *files) {
    if (files[WATCHDOG].revents)
        feed_watchdog(control);
    if (files[TICK].revents)
        tick(control);
    if (files[LISTENER].revents)
        take(control);
    for (uint32_t i = 0; i < ZOVN_CLIENTS; i++) {
        bool asked = control->clients[i].file >= 0 && files[FIRST_CLIENT + i].revents;
        if (asked && !hear(control, &control->clients[i]))
            return false;
    }
    return true;
}

void zovn_control_run(struct zovn_control *control) {
    struct pollfd files[FIRST_CLIENT + ZOVN_CLIENTS];
    do {
        files[LISTENER] = (struct pollfd){control->listener, POLLIN, 0};
        files[SIGNALS] = (struct pollfd){control->signals, POLLIN, 0};
        files[WATCHDOG] = (struct pollfd){control->watchdog, POLLIN, 0};
        files[TICK] = (struct pollfd){control->tick, POLLIN, 0};
        for (uint32_t i = 0; i < ZOVN_CLIENTS; i++)
            files[FIRST_CLIENT + i] = (struct pollfd){control->clients[i].file, POLLIN, 0};
        if (poll(files, FIRST_CLIENT + ZOVN_CLIENTS, -1) < 0 && errno != EINTR)
            return;
    } while (!files[SIGNALS].revents && serve(control, files));
}

void zovn_control_close(struct zovn_control *control) {
    for (uint32_t i = 0; i < ZOVN_CLIENTS; i++)
        if (control->clients[i].file >= 0)
            hang_up(&control->clients[i]);
    if (control->watchdog >= 0)
        close(control->watchdog);
    if (control->tick >= 0)
        close(control->tick);
    close(control->listener);
    unlink(control->path);
}

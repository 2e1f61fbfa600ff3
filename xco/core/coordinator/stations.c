// Addresses behind this host's switch of zovn: reads them all about once a second by its control
// socket; part of the coordinator's shell.
//
// A switch that is away changes nothing: it may be restarting.
#include "coordinator/stations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "coordinator/background.h"
#include "coordinator/engine/station_lines.h"
#include "coordinator/map.h"
#include "common/log.h"

#define HERE_ROOM 1024u
#define LOOK_NS 1000000        // between two looks for the answer
#define ASK_NS 1000000000      // between two readings
#define PATIENCE_NS 5000000000 // with one that does not go on

int xco_stations_open(struct xco_coordinator *c) {
    struct xco_stations *stations = &c->stations;
    stations->socket = -1;
    stations->look_ns = XCO_NEVER;
    if (c->config.switch_socket[0] == '\0') {
        return 0;
    }
    stations->look_ns = 0;
    return xco_place_log_init(&stations->here, HERE_ROOM) &&
                   xco_place_log_init(&stations->seen, HERE_ROOM)
               ? 0
               : -ENOMEM;
}

bool xco_stations_have(const struct xco_coordinator *c, const struct xco_place *place) {
    return c->stations.here.entries != NULL &&
           xco_place_log_find(&c->stations.here, place) != XCO_NOWHERE;
}

// Ends a reading, and logs each kind of end once.
static void end(struct xco_coordinator *c, int64_t now_ns, const char *problem) {
    struct xco_stations *stations = &c->stations;
    if (stations->socket >= 0) {
        close(stations->socket);
    }
    stations->socket = -1;
    stations->look_ns = now_ns + ASK_NS;
    if (problem != NULL && !stations->told) {
        xco_say("%s: where its stations are is not known: %s", c->config.switch_socket, problem);
    } else if (problem == NULL && stations->told) {
        xco_say("%s: its stations are known again", c->config.switch_socket);
    }
    stations->told = problem != NULL;
}

// Asks for the addresses from a place of the switch's table on.
static bool ask(struct xco_stations *stations, uint32_t place) {
    char question[32];
    const int length = snprintf(question, sizeof question, "stations %u\n", place);
    stations->place = place;
    stations->next = 0;
    stations->filled = 0;
    return send(stations->socket, question, (size_t)length, MSG_NOSIGNAL) == length;
}

static void begin(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stations *stations = &c->stations;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, c->config.switch_socket, sizeof c->config.switch_socket);
    stations->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stations->socket < 0 ||
        connect(stations->socket, (const struct sockaddr *)&address, sizeof address) < 0 ||
        !ask(stations, 0)) {
        end(c, now_ns, strerror(errno));
        return;
    }
    xco_place_log_clear(&stations->seen);
    stations->began_ns = now_ns;
}

static void claim(struct xco_coordinator *c, const uint8_t ethernet[6]) {
    struct xco_stations *stations = &c->stations;
    struct xco_place place = {.kind = XCO_PLACE_MAC, .vlan = XCO_ANY_VLAN};
    memcpy(place.address, ethernet, 6);
    if (!xco_place_log_set(&stations->here, &place, c->core.config.host)) {
        c->counts.places_beyond++; // not in `seen` either: it has room for those that are here
        return;
    }
    xco_place_log_set(&stations->seen, &place, c->core.config.host);
    xco_map_here(c, &place, true);
}

// The bridge is read again: it may have the address, too.
static void forget(void *context, const struct xco_place *place) {
    struct xco_coordinator *c = context;
    xco_place_log_set(&c->stations.here, place, XCO_NOWHERE);
    xco_map_here(c, place, false);
    xco_place_log_set(&c->bridge.seen, place, XCO_NOWHERE); // it has no more than the map
    c->bridge.again = true;
    c->bridge.look_ns = 0;
}

// The answer has been read: asks for the next page, or ends.
static void go_on(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stations *stations = &c->stations;
    if (stations->next > stations->place) {
        if (!ask(stations, stations->next)) {
            end(c, now_ns, strerror(errno));
        }
        return;
    }
    xco_place_log_missing(&stations->here, &stations->seen, forget, c);
    end(c, now_ns, NULL);
}

static void take_line(struct xco_coordinator *c, int64_t now_ns, char *line) {
    const struct xco_station_line read = xco_station_line_read(line);
    switch (read.kind) {
    case XCO_LINE_OTHER:
        break;
    case XCO_LINE_PAGE:
        c->stations.next = read.next;
        break;
    case XCO_LINE_STATION:
        claim(c, read.ethernet);
        break;
    case XCO_LINE_END:
        go_on(c, now_ns);
        break;
    case XCO_LINE_REFUSED:
        end(c, now_ns, "it refuses to list them: is it of another version?");
        break;
    }
}

// Takes the lines that are whole; a line has room.
static void take_lines(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stations *stations = &c->stations;
    char *newline;
    while (stations->socket >= 0 &&
           (newline = memchr(stations->text, '\n', stations->filled)) != NULL) {
        const size_t used = (size_t)(newline + 1 - stations->text);
        char line[sizeof stations->text];
        memcpy(line, stations->text, used);
        line[used - 1] = '\0';
        stations->filled -= used;
        memmove(stations->text, stations->text + used, stations->filled);
        take_line(c, now_ns, line);
    }
    if (stations->socket >= 0 && stations->filled == sizeof stations->text) {
        end(c, now_ns, "its answer has no lines");
    }
}

static void take_piece(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stations *stations = &c->stations;
    for (unsigned taken = 0; stations->socket >= 0 && xco_background_goes_on(c, taken); taken++) {
        const ssize_t length = recv(stations->socket, stations->text + stations->filled,
                                    sizeof stations->text - stations->filled, 0);
        if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        }
        if (length <= 0) {
            end(c, now_ns, length < 0 ? strerror(errno) : "its answer is cut short");
            return;
        }
        stations->filled += (size_t)length;
        take_lines(c, now_ns);
    }
}

void xco_stations_work(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stations *stations = &c->stations;
    if (stations->socket < 0) {
        begin(c, now_ns);
    }
    if (stations->socket < 0) {
        return;
    }
    stations->look_ns = now_ns + LOOK_NS;
    take_piece(c, now_ns);
    if (stations->socket >= 0 && now_ns - stations->began_ns > PATIENCE_NS) {
        end(c, now_ns, "it does not answer");
    }
}

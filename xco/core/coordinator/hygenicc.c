// HyGenICC: rates between hosts without a controller; part of the coordinator's shell.
#include "coordinator/hygenicc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/engine/allowances.h"
#include "coordinator/engine/offers.h"
#include "coordinator/marks.h"
#include "coordinator/messages.h"
#include "coordinator/refusals.h"
#include "common/log.h"

// Notes where each host listens.
static void place_all(struct xco_coordinator *c) {
    struct xco_hygenicc *h = &c->hygenicc;
    for (size_t i = 0; i < c->config.peer_count; i++) {
        const struct xco_host_address *entry = &c->config.peers[i];
        if (entry->host < h->peers.count) {
            h->places[entry->host] = (struct sockaddr_in6){
                .sin6_family = AF_INET6,
                .sin6_port = htons((uint16_t)c->config.peer_port),
                .sin6_addr = entry->address,
            };
        }
    }
}

static int allocate(struct xco_coordinator *c) {
    struct xco_hygenicc *h = &c->hygenicc;
    const size_t hosts = (size_t)c->config.hosts;
    struct xco_peers_config config = {
        .host = c->config.core.host,
        .line_bps = c->config.core.line_bps,
        .port_bps = c->config.port_bps,
        .published = c->config.published == 1,
    };
    memcpy(config.digest, c->config.digest, sizeof config.digest);
    h->places = calloc(hosts, sizeof *h->places);
    h->arrived = calloc(hosts + 1, sizeof *h->arrived);
    const bool made = xco_peers_begin(&h->peers, &config, hosts) == 0;
    return made && h->places != NULL && h->arrived != NULL ? 0 : -ENOMEM;
}

static int listen_to_hosts(const struct xco_coordinator *c, int socket, bool four) {
    const in_port_t port = htons((uint16_t)c->config.peer_port);
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
    const struct sockaddr_in plain = {.sin_family = AF_INET, .sin_port = port};
    const struct sockaddr *place = four ? (const void *)&plain : (const void *)&six;
    return bind(socket, place, four ? sizeof plain : sizeof six) < 0 ? -errno : 0;
}

static int open_socket(struct xco_coordinator *c) {
    bool four;
    c->hygenicc.socket = xco_messages_socket(&four);
    if (c->hygenicc.socket < 0) {
        return c->hygenicc.socket;
    }
    return listen_to_hosts(c, c->hygenicc.socket, four);
}

int xco_hygenicc_open(struct xco_coordinator *c) {
    c->hygenicc.socket = -1;
    if (!c->config.core.hygenicc) {
        return 0;
    }
    if (allocate(c) < 0 || xco_refusals_open(c) < 0) {
        xco_say("no memory for %llu hosts", (unsigned long long)c->config.hosts);
        return -ENOMEM;
    }
    int error = open_socket(c);
    if (error != 0) {
        xco_say("UDP port %llu cannot be used: %s: coordinator.peer_port names another",
                (unsigned long long)c->config.peer_port, strerror(-error));
        return error;
    }
    place_all(c);
    return 0;
}

// Logs the first host whose topology has other hosts.
static void note_difference(const struct xco_coordinator *c, uint16_t host) {
    if (c->hygenicc.peers.counts.differing == 1) {
        xco_say("host %u writes with another topology: give all hosts the same file", host);
    }
}

static void take_authentic(struct xco_coordinator *c, const struct xco_message *message,
                           int64_t now_ns) {
    const struct xco_header *header = &message->header;
    if (xco_peers_take(&c->hygenicc.peers, now_ns, header, &message->body.arrivals) ==
        XCO_PEER_DIFFERS) {
        note_difference(c, header->host);
    }
}

static void take(struct xco_coordinator *c, const uint8_t *datagram, size_t length,
                 int64_t now_ns) {
    struct xco_hygenicc *h = &c->hygenicc;
    struct xco_message message;
    uint8_t key[XCO_KEY_BYTES];
    if (length < XCO_HEADER_BYTES) {
        h->malformed++;
        return;
    }
    const struct xco_claim claim = xco_wire_claim(datagram);
    xco_peer_key(key, h->keys.root, claim.host);
    const enum xco_wire_result result = xco_wire_decode(datagram, length, key, &message);
    if (result == XCO_WIRE_OK && message.header.type == XCO_MARKS) {
        take_authentic(c, &message, now_ns);
    } else if (result == XCO_WIRE_VERSION_DIFFERS) {
        xco_messages_note_version(c, claim.version);
    } else {
        h->forged += result == XCO_WIRE_FORGED;
        h->malformed += result != XCO_WIRE_FORGED;
    }
}

static void take_all(struct xco_coordinator *c, int64_t now_ns) {
    enum { AT_ONCE = 64 }; // more wait for the next turn, so that a flood delays no gate
    uint8_t datagram[XCO_DATAGRAM_MAX + 1]; // one more: a longer one is malformed
    for (int i = 0; i < AT_ONCE; i++) {
        const ssize_t length = recv(c->hygenicc.socket, datagram, sizeof datagram, 0);
        if (length < 0 && errno != EINTR && errno != ECONNREFUSED) {
            return;
        }
        if (length >= 0) {
            take(c, datagram, (size_t)length, now_ns);
        }
    }
}

// Writes to some of the hosts that are due.
static void write_some(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_hygenicc *h = &c->hygenicc;
    struct xco_message message = {.header.type = XCO_MARKS};
    for (unsigned i = 0; i < XCO_PIECE && h->writing; i++) {
        h->writing = xco_peers_write(&h->peers, now_ns, &message.body.arrivals);
        const uint16_t to = message.body.arrivals.to;
        if (h->writing && h->places[to].sin6_port != 0) {
            h->sent += xco_messages_send(c, h->socket, &h->places[to], &message, h->keys.to[to]);
        }
    }
}

static bool is_alone(const struct xco_coordinator *c) {
    return c->hygenicc.socket >= 0 && c->core.fell_back && c->present && c->marks.counted;
}

int64_t xco_hygenicc_due(const struct xco_coordinator *c) {
    return is_alone(c) ? c->hygenicc.looked_ns + XCO_PEER_PERIOD_NS : XCO_NEVER;
}

void xco_hygenicc_work(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_hygenicc *h = &c->hygenicc;
    if (h->socket < 0) {
        return;
    }
    take_all(c, now_ns);
    if (now_ns >= xco_hygenicc_due(c)) {
        h->looked_ns = now_ns;
        h->writing = true;
        xco_marks_read(c, h->arrived);
        xco_offers_count(&h->peers, now_ns, c->core.config.silence_ns, h->arrived);
        xco_allowances_set(&h->peers, &c->core, now_ns);
        xco_refusals_set(c, now_ns);
    }
    if (!is_alone(c)) {
        xco_refusals_lift(c, now_ns);
    } else if (h->writing) {
        write_some(c, now_ns);
    }
}

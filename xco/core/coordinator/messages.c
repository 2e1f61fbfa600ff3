// The coordinator's messages to and from the controllers; part of its shell.
#include "coordinator/messages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/engine/arrival.h"
#include "coordinator/engine/engine.h"
#include "coordinator/map.h"
#include "coordinator/marks.h"
#include "common/log.h"

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Opens a socket for both families, or for IPv4 alone where the kernel has no IPv6.
static int open_socket(bool *four) {
    int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, off = 0;
    int made = socket(AF_INET6, type, 0);
    *four = made < 0 && errno == EAFNOSUPPORT;
    if (*four) {
        made = socket(AF_INET, type, 0);
    } else if (made >= 0 && setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
        int error = -errno;
        close(made);
        return error;
    }
    return made < 0 ? -errno : made;
}

int xco_messages_socket(bool *four) {
    int made = open_socket(four);
    int class = (int)XCO_CLASS_CONTROL; // our own messages bypass the other queues (tc-htb(8))
    if (made >= 0 && setsockopt(made, SOL_SOCKET, SO_PRIORITY, &class, sizeof class) < 0) {
        int error = -errno;
        close(made);
        return error;
    }
    return made;
}

// It needs no bind: the kernel picks a port at the first send.
int xco_messages_open(struct xco_coordinator *c) {
    c->sequence = (uint64_t)clock_ns(CLOCK_REALTIME);
    c->messages = xco_messages_socket(&c->four);
    if (c->messages < 0) {
        return c->messages;
    }
    int on = 1;
    int failed = setsockopt(c->messages, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    return failed < 0 ? -errno : 0;
}

static bool send_to(const struct xco_coordinator *c, int socket, const struct sockaddr_in6 *to,
                    const uint8_t *datagram, size_t length) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = to->sin6_port};
    four.sin_addr.s_addr = to->sin6_addr.s6_addr32[3];
    if (c->four && !IN6_IS_ADDR_V4MAPPED(&to->sin6_addr)) {
        return false; // this kernel cannot reach any
    }
    const void *place = c->four ? (const void *)&four : (const void *)to;
    socklen_t size = c->four ? sizeof four : sizeof *to;
    return sendto(socket, datagram, length, 0, place, size) == (ssize_t)length;
}

static size_t encode(struct xco_coordinator *c, struct xco_message *message,
                     const uint8_t key[XCO_KEY_BYTES], uint8_t datagram[XCO_DATAGRAM_MAX]) {
    message->header.host = c->core.config.host;
    message->header.epoch = c->origin.epoch;
    message->header.sequence = ++c->sequence;
    message->header.sent_ns = (uint64_t)xco_now_ns();
    return xco_wire_encode(message, key, datagram);
}

bool xco_messages_send(struct xco_coordinator *c, int socket, const struct sockaddr_in6 *to,
                       struct xco_message *message, const uint8_t key[XCO_KEY_BYTES]) {
    uint8_t datagram[XCO_DATAGRAM_MAX];
    size_t length = encode(c, message, key, datagram);
    bool sent = length > 0 && send_to(c, socket, to, datagram, length);
    c->counts.send_errors += !sent;
    return sent;
}

static void send_all(struct xco_coordinator *c, struct xco_message *message) {
    uint8_t datagram[XCO_DATAGRAM_MAX];
    size_t length = encode(c, message, c->keys.up, datagram);
    for (size_t i = 0; i < c->config.controller_count; i++) {
        bool sent =
            length > 0 && send_to(c, c->messages, &c->config.controllers[i], datagram, length);
        c->counts.send_errors += !sent;
    }
}

void xco_messages_report(struct xco_coordinator *c) {
    if (c->config.controller_count == 0) {
        return;
    }
    struct xco_message message = {.header.type = XCO_REPORT};
    xco_core_report(&c->core, &message.body.report);
    send_all(c, &message);
    c->counts.reports++;
}

void xco_messages_port(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_message message = {.header.type = XCO_PORT};
    if (xco_marks_report(c, now_ns, &message.body.ports)) {
        send_all(c, &message);
    }
}

void xco_messages_hello(struct xco_coordinator *c) {
    if (c->config.controller_count == 0) {
        return;
    }
    struct xco_message message = {.header.type = XCO_HELLO};
    memcpy(message.body.hello.digest, c->config.digest, XCO_DIGEST_BYTES);
    send_all(c, &message);
    c->counts.hellos++;
}

void xco_messages_places(struct xco_coordinator *c) {
    struct xco_message message = {.header.type = XCO_PLACES};
    message.body.map.to = XCO_CONTROLLER;
    message.body.map.heard = c->map.reader.have;
    xco_place_fill(&c->map.here, c->map.told, &message.body.map);
    send_all(c, &message);
}

void xco_messages_leave(struct xco_coordinator *c) {
    struct xco_message message = {.header.type = XCO_LEAVE};
    send_all(c, &message);
}

// Logs once for each reason why this controller refuses us.
static void say_refusal(const struct xco_coordinator *c, uint8_t before, uint8_t status) {
    if (status == before || status == XCO_JOINED || status == XCO_HELLO_FIRST) {
        return;
    }
    const char *why = status == XCO_TOPOLOGY_DIFFERS
                          ? "its topology is another one: give both the same file"
                          : "its topology has no such host";
    xco_say("host %u is refused by the controller: %s", c->core.config.host, why);
}

// Logs at the first timeslice why no slice is obeyed.
static void say_unsliced(const struct xco_coordinator *c, uint64_t before) {
    if (before == 0 && c->core.counts.unsliced > 0) {
        xco_say(
            "the controller grants timeslices, which gates of departure times cannot keep: safe "
            "shares; write coordinator.gates = \"tbf\", or controller.strategy = \"rate\"");
    }
}

// Keeps a message of a new epoch until that is durable; a newer message replaces it.
static void hold(struct xco_coordinator *c, const struct xco_message *message, int64_t now_ns) {
    struct xco_held *held = &c->held[message->header.type == XCO_DIRECTIVE];
    *held = (struct xco_held){.used = true, .message = *message, .arrived_ns = now_ns};
}

uint64_t xco_messages_epoch(const struct xco_coordinator *c) {
    return xco_epoch_read(c->config.epoch_file, xco_epoch_most(clock_ns(CLOCK_REALTIME)));
}

// No controller gives an epoch far ahead of the time; a host that obeyed it would obey no other
// again.
static bool is_ahead(struct xco_coordinator *c, uint64_t epoch) {
    if (epoch <= xco_epoch_most(clock_ns(CLOCK_REALTIME))) {
        return false;
    }
    if (c->counts.epochs_ahead++ == 0) {
        xco_say("epoch %llu of the controller is a day ahead of this clock: set the clocks",
                (unsigned long long)epoch);
    }
    return true;
}

// A recorded MAP of an earlier run looks like a present one until a present message has arrived.
static void obey_map(struct xco_coordinator *c, const struct xco_message *message, int64_t now_ns) {
    const struct xco_header *header = &message->header;
    bool known = c->core.joined && header->epoch == c->origin.epoch && c->origin.sequence > 0;
    if (!known || xco_origin_accept(&c->origin, header->epoch, header->sequence) != XCO_FRESH) {
        c->counts.stale++;
        return;
    }
    xco_map_take(c, now_ns, &message->body.map);
}

static void obey(struct xco_coordinator *c, const struct xco_message *message, int64_t now_ns) {
    const struct xco_header *header = &message->header;
    if (!xco_core_answers(&c->core, now_ns, message)) {
        c->counts.stale++;
        return;
    }
    if (is_ahead(c, header->epoch)) {
        return;
    }
    if (!xco_epoch_store_has(&c->store, header->epoch)) {
        hold(c, message, now_ns);
        return;
    }
    enum xco_freshness freshness = xco_origin_accept(&c->origin, header->epoch, header->sequence);
    c->counts.lower_epochs += freshness == XCO_LOWER_EPOCH;
    c->counts.stale += freshness == XCO_DUPLICATE || freshness == XCO_LATE;
    if (freshness != XCO_FRESH) {
        return;
    }
    if (header->type == XCO_DIRECTIVE) {
        uint64_t before = c->core.counts.unsliced;
        xco_core_directive(&c->core, now_ns, header, &message->body.directive);
        say_unsliced(c, before);
    } else {
        uint8_t before = c->core.refused;
        xco_core_welcome(&c->core, now_ns, header, &message->body.welcome);
        say_refusal(c, before, c->core.refused);
        if (c->core.joined) {
            xco_map_joined(c, now_ns);
        }
    }
}

void xco_messages_kept(struct xco_coordinator *c) {
    uint64_t times;
    ssize_t got = read(c->store.tells, &times, sizeof times);
    for (size_t i = 0; got > 0 && i < sizeof c->held / sizeof c->held[0]; i++) {
        if (c->held[i].used) {
            c->held[i].used = false;
            obey(c, &c->held[i].message, c->held[i].arrived_ns);
        }
    }
}

// Logs the first, though anyone can send one: a controller of another release cannot tell us.
void xco_messages_note_version(struct xco_coordinator *c, uint8_t version) {
    if (c->counts.versions++ == 0) {
        xco_say("a message of protocol version %u arrived, this is version %u: install the same "
                "release on controllers and hosts",
                version, XCO_WIRE_VERSION);
    }
}

static void take(struct xco_coordinator *c, const uint8_t *datagram, size_t length,
                 int64_t arrived_ns) {
    struct xco_message message;
    enum xco_wire_result result = xco_wire_decode(datagram, length, c->keys.down, &message);
    bool to_hosts = result == XCO_WIRE_OK && message.header.host == XCO_CONTROLLER &&
                    (message.header.type == XCO_DIRECTIVE || message.header.type == XCO_WELCOME ||
                     message.header.type == XCO_MAP);
    c->counts.received++;
    if (result == XCO_WIRE_VERSION_DIFFERS) {
        xco_messages_note_version(c, xco_wire_claim(datagram).version);
        return;
    }
    c->counts.forged += result == XCO_WIRE_FORGED;
    c->counts.malformed += result != XCO_WIRE_FORGED && !to_hosts;
    if (to_hosts && message.header.type == XCO_MAP) {
        obey_map(c, &message, arrived_ns);
    } else if (to_hosts) {
        obey(c, &message, arrived_ns);
    }
}

void xco_messages_take(struct xco_coordinator *c) {
    enum { AT_ONCE = 64 }; // more wait for the next turn, so that a flood delays no gate
    uint8_t datagram[XCO_DATAGRAM_MAX + 1]; // one more: a longer one is malformed
    _Alignas(8) uint8_t control[64];
    for (int i = 0; i < AT_ONCE; i++) {
        struct iovec place = {datagram, sizeof datagram};
        struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        ssize_t length = recvmsg(c->messages, &message, 0);
        if (length < 0 && errno != EINTR && errno != ECONNREFUSED) {
            return;
        }
        if (length >= 0) {
            take(c, datagram, (size_t)length, xco_arrival_ns(&message, clock_ns));
        }
    }
}

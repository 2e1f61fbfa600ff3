// Encodes and decodes messages; the layouts are those of docs/reference/xco-protocol.md.
#include "common/wire.h"
#include "common/wire_check.h"

#include <sodium.h>
#include <string.h>

static const uint8_t MAGIC[4] = {'X', 'C', 'O', '1'};

enum {
    HELLO_BYTES = XCO_DIGEST_BYTES,
    WELCOME_BYTES = 40,
    REPORT_BYTES = 32,
    WAITING_BYTES = 20,
    SENT_BYTES = 6, // of a counter: 281 TB, then it begins again
    DIRECTIVE_BYTES = 40,
    PERMIT_BYTES = 12,
    MAP_BYTES = 40,
    LOCATED_BYTES = 22,
    ARRIVALS_BYTES = 88,
    PORTS_BYTES = 40,
    PORT_BYTES = 64,
};

_Static_assert(XCO_HEADER_BYTES + MAP_BYTES + XCO_LOCATED_MAX * LOCATED_BYTES + XCO_AUTH_BYTES <=
                   XCO_DATAGRAM_MAX,
               "a full map fits");
_Static_assert(XCO_HEADER_BYTES + PORTS_BYTES + XCO_PORTS_MAX * PORT_BYTES + XCO_AUTH_BYTES <=
                   XCO_DATAGRAM_MAX,
               "the most ports fit");
_Static_assert(XCO_AUTH_BYTES >= crypto_generichash_BYTES_MIN, "the authenticator's length");
_Static_assert(XCO_KEY_BYTES == crypto_generichash_KEYBYTES, "the key's length");
_Static_assert(XCO_HEADER_BYTES + DIRECTIVE_BYTES + XCO_ENTRIES_MAX * PERMIT_BYTES +
                       XCO_AUTH_BYTES <=
                   XCO_DATAGRAM_MAX,
               "a full directive fits");
_Static_assert(XCO_HEADER_BYTES + REPORT_BYTES + XCO_ENTRIES_MAX * WAITING_BYTES + XCO_AUTH_BYTES ==
                   XCO_DATAGRAM_MAX,
               "the longest message");

// Writes and reads go through a cursor; the lengths have been checked before.
static void put(uint8_t **at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        *(*at)++ = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t **at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)*(*at)++ << (8 * i);
    }
    return value;
}

int xco_wire_init(void) {
    return sodium_init() < 0 ? -1 : 0;
}

static void put_header(uint8_t **at, const struct xco_header *header) {
    memcpy(*at, MAGIC, sizeof MAGIC);
    *at += sizeof MAGIC;
    put(at, header->type, 1);
    put(at, XCO_WIRE_VERSION, 1);
    put(at, header->host, 2);
    put(at, header->epoch, 8);
    put(at, header->sequence, 8);
    put(at, header->sent_ns, 8);
}

static void put_hello(uint8_t **at, const struct xco_hello *hello) {
    memcpy(*at, hello->digest, XCO_DIGEST_BYTES);
    *at += XCO_DIGEST_BYTES;
}

static void put_welcome(uint8_t **at, const struct xco_welcome *welcome) {
    put(at, welcome->to, 2);
    put(at, welcome->status, 1);
    put(at, welcome->strategy, 1);
    put(at, 0, 4);
    put(at, welcome->slice_ns, 8);
    put(at, welcome->silence_ns, 8);
    put(at, welcome->echo_sent_ns, 8);
    put(at, welcome->echo_received_ns, 8);
}

static void put_waiting(uint8_t **at, const struct xco_waiting *entry) {
    put(at, entry->destination, 2);
    put(at, entry->backlog_bytes, 4);
    put(at, entry->rate_kbps, 4);
    put(at, entry->sent_bytes, SENT_BYTES);
    put(at, entry->weight, 2);
    put(at, entry->guarantee_mbps, 2);
}

static void put_report(uint8_t **at, const struct xco_report *report) {
    put(at, report->flags, 2);
    put(at, report->count, 2);
    put(at, 0, 4);
    put(at, report->directive_sequence, 8);
    put(at, report->gave_up_sequence, 8);
    put(at, report->free_ns, 8);
    for (size_t i = 0; i < report->count; i++) {
        put_waiting(at, &report->entries[i]);
    }
}

static void put_directive(uint8_t **at, const struct xco_directive *directive) {
    put(at, directive->to, 2);
    put(at, directive->mode, 1);
    put(at, 0, 1);
    put(at, directive->count, 2);
    put(at, 0, 2);
    put(at, directive->start_ns, 8);
    put(at, directive->end_ns, 8);
    put(at, directive->echo_sent_ns, 8);
    put(at, directive->echo_received_ns, 8);
    for (size_t i = 0; i < directive->count; i++) {
        put(at, directive->entries[i].destination, 2);
        put(at, 0, 2);
        put(at, directive->entries[i].rate_bps, 8);
    }
}

static void put_map(uint8_t **at, const struct xco_map *map) {
    put(at, map->to, 2);
    put(at, map->count, 2);
    put(at, 0, 4);
    put(at, map->from, 8);
    put(at, map->until, 8);
    put(at, map->last, 8);
    put(at, map->heard, 8);
    for (size_t i = 0; i < map->count; i++) {
        const struct xco_place *place = &map->entries[i].place;
        memcpy(*at, place->address, sizeof place->address);
        *at += sizeof place->address;
        put(at, place->vlan, 2);
        put(at, place->kind, 1);
        put(at, 0, 1);
        put(at, map->entries[i].host, 2);
    }
}

static void put_arrivals(uint8_t **at, const struct xco_arrivals *arrivals) {
    memcpy(*at, arrivals->digest, XCO_DIGEST_BYTES);
    *at += XCO_DIGEST_BYTES;
    put(at, arrivals->to, 2);
    put(at, arrivals->weight, 2);
    put(at, arrivals->guarantee_mbps, 2);
    put(at, 0, 2);
    put(at, arrivals->read_ns, 8);
    put(at, arrivals->packets, 8);
    put(at, arrivals->bytes, 8);
    put(at, arrivals->marks, 8);
    put(at, arrivals->offer_bps, 8);
    put(at, arrivals->wants_bps, 8);
}

static void put_ports(uint8_t **at, const struct xco_ports *ports) {
    memcpy(*at, ports->digest, XCO_DIGEST_BYTES);
    *at += XCO_DIGEST_BYTES;
    put(at, ports->count, 2);
    put(at, 0, 6);
    for (size_t i = 0; i < ports->count; i++) {
        const struct xco_port *port = &ports->entries[i];
        put(at, port->source, 4);
        put(at, port->target, 4);
        put(at, port->read_ns, 8);
        put(at, port->packets, 8);
        put(at, port->bytes, 8);
        put(at, port->coordinated_bytes, 8);
        put(at, port->marks, 8);
        put(at, port->drops, 8);
        put(at, port->backlog_bytes, 8);
    }
}

static void put_body(uint8_t **at, const struct xco_message *message) {
    switch (message->header.type) {
    case XCO_HELLO:
        put_hello(at, &message->body.hello);
        break;
    case XCO_WELCOME:
        put_welcome(at, &message->body.welcome);
        break;
    case XCO_REPORT:
        put_report(at, &message->body.report);
        break;
    case XCO_DIRECTIVE:
        put_directive(at, &message->body.directive);
        break;
    case XCO_PLACES:
    case XCO_MAP:
        put_map(at, &message->body.map);
        break;
    case XCO_MARKS:
        put_arrivals(at, &message->body.arrivals);
        break;
    case XCO_PORT:
        put_ports(at, &message->body.ports);
        break;
    default: // LEAVE has no body
        break;
    }
}

// It cannot fail: all lengths are in their ranges.
static void authenticate(uint8_t tag[XCO_AUTH_BYTES], const uint8_t *plain, size_t length,
                         const uint8_t key[XCO_KEY_BYTES]) {
    (void)crypto_generichash(tag, XCO_AUTH_BYTES, plain, length, key, XCO_KEY_BYTES);
}

static bool is_authentic(const uint8_t *plain, size_t length, const uint8_t key[XCO_KEY_BYTES]) {
    uint8_t tag[XCO_AUTH_BYTES];
    authenticate(tag, plain, length, key);
    return sodium_memcmp(tag, plain + length, sizeof tag) == 0;
}

size_t xco_wire_encode(const struct xco_message *message, const uint8_t key[XCO_KEY_BYTES],
                       uint8_t datagram[XCO_DATAGRAM_MAX]) {
    if (!xco_wire_is_sound(message)) {
        return 0;
    }
    uint8_t *at = datagram;
    put_header(&at, &message->header);
    put_body(&at, message);
    const size_t length = (size_t)(at - datagram);
    authenticate(at, datagram, length, key);
    return length + XCO_AUTH_BYTES;
}

static bool get_hello(const uint8_t *at, size_t length, struct xco_hello *hello) {
    if (length != HELLO_BYTES) {
        return false;
    }
    memcpy(hello->digest, at, XCO_DIGEST_BYTES);
    return true;
}

static bool get_welcome(const uint8_t *at, size_t length, struct xco_welcome *welcome) {
    if (length != WELCOME_BYTES) {
        return false;
    }
    welcome->to = (uint16_t)get(&at, 2);
    welcome->status = (uint8_t)get(&at, 1);
    welcome->strategy = (uint8_t)get(&at, 1);
    const uint64_t reserved = get(&at, 4);
    welcome->slice_ns = get(&at, 8);
    welcome->silence_ns = get(&at, 8);
    welcome->echo_sent_ns = get(&at, 8);
    welcome->echo_received_ns = get(&at, 8);
    return reserved == 0;
}

static struct xco_waiting get_waiting(const uint8_t **at) {
    struct xco_waiting entry;
    entry.destination = (uint16_t)get(at, 2);
    entry.backlog_bytes = (uint32_t)get(at, 4);
    entry.rate_kbps = (uint32_t)get(at, 4);
    entry.sent_bytes = get(at, SENT_BYTES);
    entry.weight = (uint16_t)get(at, 2);
    entry.guarantee_mbps = (uint16_t)get(at, 2);
    return entry;
}

static bool get_report(const uint8_t *at, size_t length, struct xco_report *report) {
    if (length < REPORT_BYTES) {
        return false;
    }
    report->flags = (uint16_t)get(&at, 2);
    report->count = (uint16_t)get(&at, 2);
    const uint64_t reserved = get(&at, 4);
    report->directive_sequence = get(&at, 8);
    report->gave_up_sequence = get(&at, 8);
    report->free_ns = get(&at, 8);
    if (report->count > XCO_ENTRIES_MAX ||
        length != REPORT_BYTES + (size_t)report->count * WAITING_BYTES) {
        return false;
    }
    for (size_t i = 0; i < report->count; i++) {
        report->entries[i] = get_waiting(&at);
    }
    return reserved == 0;
}

static bool get_directive(const uint8_t *at, size_t length, struct xco_directive *directive) {
    if (length < DIRECTIVE_BYTES) {
        return false;
    }
    directive->to = (uint16_t)get(&at, 2);
    directive->mode = (uint8_t)get(&at, 1);
    uint64_t reserved = get(&at, 1);
    directive->count = (uint16_t)get(&at, 2);
    reserved |= get(&at, 2);
    directive->start_ns = get(&at, 8);
    directive->end_ns = get(&at, 8);
    directive->echo_sent_ns = get(&at, 8);
    directive->echo_received_ns = get(&at, 8);
    if (directive->count > XCO_ENTRIES_MAX ||
        length != DIRECTIVE_BYTES + (size_t)directive->count * PERMIT_BYTES) {
        return false;
    }
    for (size_t i = 0; i < directive->count; i++) {
        directive->entries[i].destination = (uint16_t)get(&at, 2);
        reserved |= get(&at, 2);
        directive->entries[i].rate_bps = get(&at, 8);
    }
    return reserved == 0;
}

static bool get_map(const uint8_t *at, size_t length, struct xco_map *map) {
    if (length < MAP_BYTES) {
        return false;
    }
    map->to = (uint16_t)get(&at, 2);
    map->count = (uint16_t)get(&at, 2);
    uint64_t reserved = get(&at, 4);
    map->from = get(&at, 8);
    map->until = get(&at, 8);
    map->last = get(&at, 8);
    map->heard = get(&at, 8);
    if (map->count > XCO_LOCATED_MAX || length != MAP_BYTES + (size_t)map->count * LOCATED_BYTES) {
        return false;
    }
    for (size_t i = 0; i < map->count; i++) {
        struct xco_place *place = &map->entries[i].place;
        memcpy(place->address, at, sizeof place->address);
        at += sizeof place->address;
        place->vlan = (uint16_t)get(&at, 2);
        place->kind = (uint8_t)get(&at, 1);
        place->reserved = 0;
        reserved |= get(&at, 1);
        map->entries[i].host = (uint16_t)get(&at, 2);
    }
    return reserved == 0;
}

static bool get_arrivals(const uint8_t *at, size_t length, struct xco_arrivals *arrivals) {
    if (length != ARRIVALS_BYTES) {
        return false;
    }
    memcpy(arrivals->digest, at, XCO_DIGEST_BYTES);
    at += XCO_DIGEST_BYTES;
    arrivals->to = (uint16_t)get(&at, 2);
    arrivals->weight = (uint16_t)get(&at, 2);
    arrivals->guarantee_mbps = (uint16_t)get(&at, 2);
    const uint64_t reserved = get(&at, 2);
    arrivals->read_ns = get(&at, 8);
    arrivals->packets = get(&at, 8);
    arrivals->bytes = get(&at, 8);
    arrivals->marks = get(&at, 8);
    arrivals->offer_bps = get(&at, 8);
    arrivals->wants_bps = get(&at, 8);
    return reserved == 0;
}

static struct xco_port get_port(const uint8_t **at) {
    struct xco_port port;
    port.source = (uint32_t)get(at, 4);
    port.target = (uint32_t)get(at, 4);
    port.read_ns = get(at, 8);
    port.packets = get(at, 8);
    port.bytes = get(at, 8);
    port.coordinated_bytes = get(at, 8);
    port.marks = get(at, 8);
    port.drops = get(at, 8);
    port.backlog_bytes = get(at, 8);
    return port;
}

static bool get_ports(const uint8_t *at, size_t length, struct xco_ports *ports) {
    if (length < PORTS_BYTES) {
        return false;
    }
    memcpy(ports->digest, at, XCO_DIGEST_BYTES);
    at += XCO_DIGEST_BYTES;
    ports->count = (uint16_t)get(&at, 2);
    const uint64_t reserved = get(&at, 6);
    if (ports->count > XCO_PORTS_MAX || length != PORTS_BYTES + (size_t)ports->count * PORT_BYTES) {
        return false;
    }
    for (size_t i = 0; i < ports->count; i++) {
        ports->entries[i] = get_port(&at);
    }
    return reserved == 0;
}

static bool get_body(const uint8_t *at, size_t length, struct xco_message *message) {
    switch (message->header.type) {
    case XCO_HELLO:
        return get_hello(at, length, &message->body.hello);
    case XCO_WELCOME:
        return get_welcome(at, length, &message->body.welcome);
    case XCO_REPORT:
        return get_report(at, length, &message->body.report);
    case XCO_DIRECTIVE:
        return get_directive(at, length, &message->body.directive);
    case XCO_PLACES:
    case XCO_MAP:
        return get_map(at, length, &message->body.map);
    case XCO_MARKS:
        return get_arrivals(at, length, &message->body.arrivals);
    case XCO_PORT:
        return get_ports(at, length, &message->body.ports);
    case XCO_LEAVE:
        return length == 0;
    default:
        return false;
    }
}

enum xco_wire_result xco_wire_decode(const uint8_t *datagram, size_t length,
                                     const uint8_t key[XCO_KEY_BYTES],
                                     struct xco_message *message) {
    if (length < XCO_HEADER_BYTES + XCO_AUTH_BYTES || length > XCO_DATAGRAM_MAX ||
        memcmp(datagram, MAGIC, sizeof MAGIC) != 0) {
        return XCO_WIRE_MALFORMED;
    }
    const uint8_t *at = datagram + sizeof MAGIC;
    message->header.type = (uint8_t)get(&at, 1);
    if (get(&at, 1) != XCO_WIRE_VERSION) {
        return XCO_WIRE_VERSION_DIFFERS;
    }
    const size_t plain = length - XCO_AUTH_BYTES;
    if (!is_authentic(datagram, plain, key)) {
        return XCO_WIRE_FORGED;
    }
    message->header.host = (uint16_t)get(&at, 2);
    message->header.epoch = get(&at, 8);
    message->header.sequence = get(&at, 8);
    message->header.sent_ns = get(&at, 8);
    if (!get_body(at, plain - XCO_HEADER_BYTES, message) || !xco_wire_is_sound(message)) {
        return XCO_WIRE_MALFORMED;
    }
    return XCO_WIRE_OK;
}

struct xco_claim xco_wire_claim(const uint8_t *datagram) {
    const uint8_t *type = datagram + sizeof MAGIC, *host = type + 2, *sequence = host + 2 + 8;
    return (struct xco_claim){
        .type = *type,
        .version = type[1],
        .host = (uint16_t)get(&host, 2),
        .sequence = get(&sequence, 8),
    };
}

enum xco_freshness xco_origin_accept(struct xco_origin *origin, uint64_t epoch, uint64_t sequence) {
    if (epoch < origin->epoch) {
        return XCO_LOWER_EPOCH;
    }
    if (epoch == origin->epoch && sequence <= origin->sequence) {
        return sequence == origin->sequence ? XCO_DUPLICATE : XCO_LATE;
    }
    origin->epoch = epoch;
    origin->sequence = sequence;
    return XCO_FRESH;
}

enum xco_freshness xco_origin_accept_host(struct xco_origin *origin, uint64_t sequence) {
    return xco_origin_accept(origin, origin->epoch, sequence);
}

// A host without a controller behind plain functions, for tests through ctypes.
#include "coordinator/engine/allowances.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/offers.h"
#include "coordinator/engine/orders.h"
#include "coordinator/engine/shares.h"

#include <stdlib.h>
#include <string.h>

struct xco_peers *shim_peers(uint16_t host, uint64_t line_bps, uint64_t port_bps, size_t hosts) {
    struct xco_peers *peers = calloc(1, sizeof *peers);
    const struct xco_peers_config config = {
        .host = host, .line_bps = line_bps, .port_bps = port_bps};
    if (peers == NULL || xco_peers_begin(peers, &config, hosts) < 0) {
        abort();
    }
    return peers;
}

void shim_publish(struct xco_peers *peers) {
    peers->config.published = true;
}

void shim_peers_free(struct xco_peers *peers) {
    free(peers->list);
    free(peers->demands);
    free(peers);
}

// Takes a message of numbers: to, packets, bytes, marks, offer, wants, weight, guarantee; returns
// the result.
int shim_peers_take(struct xco_peers *peers, int64_t now_ns, uint16_t from, uint64_t sequence,
                    uint8_t digest, const uint64_t *numbers) {
    const struct xco_header header = {.type = XCO_MARKS, .host = from, .sequence = sequence};
    struct xco_arrivals told = {
        .to = (uint16_t)numbers[0],
        .packets = numbers[1],
        .bytes = numbers[2],
        .marks = numbers[3],
        .offer_bps = numbers[4],
        .wants_bps = numbers[5],
        .weight = (uint16_t)numbers[6],
        .guarantee_mbps = (uint16_t)numbers[7],
    };
    memset(told.digest, digest, sizeof told.digest);
    return (int)xco_peers_take(peers, now_ns, &header, &told);
}

// Writes the numbers of the next message, or returns false.
bool shim_peers_write(struct xco_peers *peers, int64_t now_ns, uint64_t *numbers) {
    struct xco_arrivals told;
    if (!xco_peers_write(peers, now_ns, &told)) {
        return false;
    }
    const uint64_t written[] = {told.to,        told.packets,   told.bytes,  told.marks,
                                told.offer_bps, told.wants_bps, told.weight, told.guarantee_mbps};
    memcpy(numbers, written, sizeof written);
    return true;
}

void shim_promise(struct xco_core *core, unsigned gate, uint16_t weight, uint16_t guarantee_mbps) {
    core->destinations[gate].weight = weight;
    core->destinations[gate].guarantee_mbps = guarantee_mbps;
}

// Writes bytes sent, weight and guarantee of a report's first entry.
void shim_first_entry(const struct xco_core *core, uint64_t *numbers) {
    struct xco_report report;
    xco_core_report(core, &report);
    numbers[0] = report.entries[0].sent_bytes;
    numbers[1] = report.entries[0].weight;
    numbers[2] = report.entries[0].guarantee_mbps;
}

uint64_t shim_offer(const struct xco_peers *peers, unsigned host) {
    return peers->list[host].offer_bps;
}

uint64_t shim_between(const struct xco_peers *peers, unsigned host) {
    return peers->list[host].between_marks;
}

uint64_t shim_wants(const struct xco_peers *peers, unsigned host) {
    return peers->list[host].wants_bps;
}

uint64_t shim_gate_rate(const struct xco_core *core, unsigned gate, int64_t now_ns) {
    return xco_order_rate(core, &core->destinations[gate], now_ns);
}

uint64_t shim_allowed(const struct xco_core *core, unsigned gate) {
    return core->destinations[gate].allowed_bps;
}

uint64_t shim_safe(const struct xco_core *core, unsigned gate) {
    return xco_order_safe(core, &core->destinations[gate]);
}

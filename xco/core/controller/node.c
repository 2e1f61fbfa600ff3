// Connects decisions and wire: authenticates, decodes, encodes, counts dropped messages.
#include "controller/node.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/engine/engine.h"
#include "controller/engine/hosts.h"
#include "controller/engine/view.h"
#include "common/log.h"

// Reads the master key and derives the keys of all hosts; NULL, or the error.
static const char *open_keys(struct xco_node *node) {
    const uint32_t hosts = xco_control_hosts(node->core);
    node->keys = calloc(hosts, sizeof *node->keys);
    if (node->keys == NULL) {
        return "out of memory";
    }
    const char *problem = xco_master_key_read(node->config.key_path, node->master);
    for (uint32_t host = 0; problem == NULL && host < hosts; host++) {
        xco_host_keys_derive(&node->keys[host], node->master, (uint16_t)host);
    }
    return problem;
}

bool xco_node_open(struct xco_node *node, const char *path,
                   char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    *node = (struct xco_node){0};
    struct xco_network network;
    uint32_t *weights;
    if (xco_wire_init() != 0) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "libsodium does not start");
        return false;
    }
    if (!xco_controller_config_read(path, &node->config, &network, &weights, problem)) {
        return false;
    }
    const char *why;
    node->core = xco_control_new(&node->config.core, &network, weights, &why);
    if (node->core == NULL) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%s: %s", path, why);
        return false;
    }
    why = open_keys(node);
    if (why != NULL) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", node->config.key_path, why);
        xco_node_close(node);
        return false;
    }
    return true;
}

void xco_node_close(struct xco_node *node) {
    if (node->keys != NULL) {
        sodium_memzero(node->keys, xco_control_hosts(node->core) * sizeof *node->keys);
    }
    free(node->keys);
    xco_control_free(node->core);
    sodium_memzero(node->master, sizeof node->master);
    node->core = NULL;
    node->keys = NULL;
}

static bool refuse(struct xco_node *next, const char *path, const char *why,
                   char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", path, why);
    xco_node_close(next);
    return false;
}

bool xco_node_reload(struct xco_node *node, const char *path,
                     char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    struct xco_node next;
    bool good = xco_node_open(&next, path, problem);
    if (good && next.config.core.epoch != node->config.core.epoch) {
        good = refuse(&next, path, "another epoch", problem);
    }
    if (good && !xco_control_succeed(next.core, node->core)) {
        good = refuse(&next, path, "out of memory", problem);
    }
    if (!good) {
        xco_control_counters(node->core)->reloads_failed++;
        return false;
    }
    xco_control_counters(next.core)->reloads++;
    xco_node_close(node);
    *node = next;
    return true;
}

bool xco_node_raise(struct xco_node *node, uint64_t now_ns, uint64_t epoch) {
    if (!xco_control_raise(node->core, now_ns, epoch)) {
        return false;
    }
    node->config.core.epoch = epoch;
    return true;
}

static void count_dropped(struct xco_counters *counters, enum xco_wire_result result) {
    switch (result) {
    case XCO_WIRE_FORGED:
        counters->dropped_forged++;
        break;
    default:
        counters->dropped_malformed++;
        break;
    }
}

// Logs the first: its sender gets no answer that it could read.
static void note_version(struct xco_node *node, uint8_t version) {
    if (xco_control_counters(node->core)->dropped_version++ == 0) {
        xco_say("a message of protocol version %u arrived, this is version %u: install the same "
                "release on controllers, hosts and port agents",
                version, XCO_WIRE_VERSION);
    }
}

// Returns the keys of a host; derived into `room` for a host outside the topology.
static const struct xco_host_keys *keys_of(const struct xco_node *node, uint16_t host,
                                           struct xco_host_keys *room) {
    if (host < xco_control_hosts(node->core)) {
        return &node->keys[host];
    }
    xco_host_keys_derive(room, node->master, host);
    return room;
}

enum xco_receive_result xco_node_receive(struct xco_node *node, uint64_t now_ns,
                                         uint64_t arrived_ns, const uint8_t *datagram,
                                         size_t length, uint16_t *host) {
    struct xco_message message;
    struct xco_host_keys room;
    if (length < XCO_HEADER_BYTES) {
        count_dropped(xco_control_counters(node->core), XCO_WIRE_MALFORMED);
        return XCO_DROPPED;
    }
    const struct xco_claim claim = xco_wire_claim(datagram);
    if (claim.version != XCO_WIRE_VERSION) {
        note_version(node, claim.version);
        return XCO_DROPPED;
    }
    if (!xco_control_heeds(node->core, &claim)) {
        return XCO_DROPPED;
    }
    const uint8_t *key = keys_of(node, claim.host, &room)->up;
    const enum xco_wire_result result = xco_wire_decode(datagram, length, key, &message);
    if (result != XCO_WIRE_OK) {
        count_dropped(xco_control_counters(node->core), result);
        return XCO_DROPPED;
    }
    *host = message.header.host;
    return xco_control_receive(node->core, now_ns, arrived_ns, &message);
}

size_t xco_node_take(struct xco_node *node, uint64_t now_ns, uint8_t datagram[XCO_DATAGRAM_MAX],
                     uint16_t *host) {
    struct xco_message message;
    struct xco_host_keys room;
    if (!xco_control_take(node->core, now_ns, &message)) {
        return 0;
    }
    *host = message.header.type == XCO_WELCOME ? message.body.welcome.to
            : message.header.type == XCO_MAP   ? message.body.map.to
                                               : message.body.directive.to;
    return xco_wire_encode(&message, keys_of(node, *host, &room)->down, datagram);
}

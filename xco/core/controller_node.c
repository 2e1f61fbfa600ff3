// Puts decisions and wire together: authenticates, decodes, encodes, counts what is dropped.
#include "controller_node.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

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
    if (xco_key_read(node->config.key_path, node->key) != 0) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", node->config.key_path,
                       errno == EINVAL ? "a key has exactly 32 bytes" : strerror(errno));
        xco_node_close(node);
        return false;
    }
    return true;
}

void xco_node_close(struct xco_node *node) {
    xco_control_free(node->core);
    sodium_memzero(node->key, sizeof node->key);
    node->core = NULL;
}

bool xco_node_reload(struct xco_node *node, const char *path,
                     char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    struct xco_node next;
    bool good = xco_node_open(&next, path, problem);
    if (good && next.config.core.epoch != node->config.core.epoch) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: another epoch", path);
        xco_node_close(&next);
        good = false;
    }
    if (!good) {
        xco_control_counters(node->core)->reloads_failed++;
        return false;
    }
    xco_control_succeed(next.core, node->core);
    xco_control_counters(next.core)->reloads++;
    xco_node_close(node);
    *node = next;
    return true;
}

static void count_dropped(struct xco_counters *counters, enum xco_wire_result result) {
    switch (result) {
    case XCO_WIRE_FORGED:
        counters->dropped_forged++;
        break;
    case XCO_WIRE_VERSION_DIFFERS:
        counters->dropped_version++;
        break;
    default:
        counters->dropped_malformed++;
        break;
    }
}

enum xco_verdict xco_node_receive(struct xco_node *node, uint64_t now_ns, uint64_t arrived_ns,
                                  const uint8_t *datagram, size_t length, uint16_t *host) {
    struct xco_message message;
    const enum xco_wire_result result = xco_wire_decode(datagram, length, node->key, &message);
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
    if (!xco_control_take(node->core, now_ns, &message)) {
        return 0;
    }
    *host = message.header.type == XCO_WELCOME ? message.body.welcome.to
                                               : message.body.directive.to;
    return xco_wire_encode(&message, node->key, datagram);
}

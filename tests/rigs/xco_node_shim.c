// Lets tests call the controller without sockets: a node behind a pointer, datagrams as bytes.
#include <stdlib.h>

#include "controller/datagrams.h"
#include "controller/node.h"
#include "controller/shell.h"
#include "controller/engine/engine.h"
#include "controller/engine/state.h"
#include "controller/engine/view.h"

struct xco_node *shim_open(const char *path, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    struct xco_node *node = calloc(1, sizeof *node);
    if (node != NULL && !xco_node_open(node, path, problem)) {
        free(node);
        return NULL;
    }
    return node;
}

void shim_close(struct xco_node *node) {
    xco_node_close(node);
    free(node);
}

int shim_reload(struct xco_node *node, const char *path, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    return xco_node_reload(node, path, problem);
}

int shim_receive(struct xco_node *node, uint64_t now_ns, uint64_t arrived_ns,
                 const uint8_t *datagram, size_t length) {
    uint16_t host;
    return (int)xco_node_receive(node, now_ns, arrived_ns, datagram, length, &host);
}

void shim_advance(struct xco_node *node, uint64_t now_ns) {
    xco_control_advance(node->core, now_ns);
}

uint64_t shim_deadline(const struct xco_node *node) {
    return xco_control_deadline(node->core);
}

size_t shim_take(struct xco_node *node, uint64_t now_ns, uint8_t datagram[XCO_DATAGRAM_MAX],
                 uint16_t *host) {
    return xco_node_take(node, now_ns, datagram, host);
}

int shim_raise(struct xco_node *node, uint64_t now_ns, uint64_t epoch) {
    return xco_node_raise(node, now_ns, epoch);
}

int shim_strategy(struct xco_node *node, uint64_t now_ns, uint8_t strategy) {
    return xco_control_set_strategy(node->core, now_ns, strategy);
}

// What the scheduler holds, in bytes.
size_t shim_schedule_bytes(const struct xco_node *node) {
    return xco_schedule_bytes(node->core->schedule);
}

// For how long a host was granted its turns, in ns.
uint64_t shim_granted_ns(const struct xco_node *node, uint32_t host) {
    return node->core->peers[host]->granted_ns;
}

// Copies the counters, in the order of their names; returns how many there are.
size_t shim_counters(struct xco_node *node, uint64_t *values, size_t room) {
    const uint64_t *counters = (const uint64_t *)(const void *)xco_control_counters(node->core);
    const size_t count = sizeof(struct xco_counters) / sizeof(uint64_t);
    xco_control_gauge(node->core);
    for (size_t i = 0; i < count && i < room; i++) {
        values[i] = counters[i];
    }
    return count;
}

const char *shim_counter_names(void) {
#define XCO_NAME(name) #name " "
    return XCO_CONTROLLER_COUNTERS(XCO_NAME);
#undef XCO_NAME
}

// A controller with its sockets, which the test calls instead of the loop.
struct xco_shell *shim_shell_open(const char *path, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    struct xco_shell *shell = calloc(1, sizeof *shell);
    *shell = (struct xco_shell){
        .path = path, .epoll = -1, .udp = -1, .timer = -1, .signals = -1, .listener = -1};
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        shell->clients[i] = -1;
    }
    (void)(xco_node_open(&shell->node, path, problem) && xco_shell_open(shell, problem));
    return shell;
}

int shim_shell_udp(const struct xco_shell *shell) {
    return shell->udp;
}

uint64_t shim_shell_turn(struct xco_shell *shell) {
    xco_shell_receive(shell);
    return xco_control_counters(shell->node.core)->dropped_forged;
}

void shim_shell_close(struct xco_shell *shell) {
    xco_shell_close(shell);
    free(shell);
}

// Decodes and encodes again; a length, or minus the enum xco_wire_result.
int shim_again(const uint8_t *datagram, size_t length, const uint8_t *key, uint8_t *again) {
    struct xco_message message;
    const enum xco_wire_result result = xco_wire_decode(datagram, length, key, &message);
    return result == XCO_WIRE_OK ? (int)xco_wire_encode(&message, key, again) : -(int)result;
}

// A controller without its sockets: datagrams and instants in, datagrams out.
#ifndef XCO_CONTROLLER_NODE_H
#define XCO_CONTROLLER_NODE_H

#include "controller/config.h"
#include "controller/engine/engine.h"
#include "common/keys.h"

struct xco_node {
    struct xco_control *core;
    uint8_t master[XCO_KEY_BYTES];
    struct xco_host_keys *keys; // one per host
    struct xco_controller_config config;
};

// Reads a loop file and its key, and creates a node from it; false: then `problem` says what is
// wrong. Close the node with xco_node_close.
bool xco_node_open(struct xco_node *node, const char *path, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_node_close(struct xco_node *node);

// Reads the loop file again and applies it; false: the node continues as before, and `problem` says
// why. Hosts join again, as the topology may have changed.
bool xco_node_reload(struct xco_node *node, const char *path,
                     char problem[XCO_CONFIG_PROBLEM_BYTES]);

// Continues in a higher epoch, already in the loop file; false: it is not higher.
bool xco_node_raise(struct xco_node *node, uint64_t now_ns, uint64_t epoch);

// Obeys a datagram read now that arrived before, or counts why not. Unless XCO_DROPPED, *host is
// its sender, possibly a number outside the topology.
enum xco_receive_result xco_node_receive(struct xco_node *node, uint64_t now_ns,
                                         uint64_t arrived_ns, const uint8_t *datagram,
                                         size_t length, uint16_t *host);

// Writes the next datagram to send and its receiving host; 0: none.
size_t xco_node_take(struct xco_node *node, uint64_t now_ns, uint8_t datagram[XCO_DATAGRAM_MAX],
                     uint16_t *host);

#endif

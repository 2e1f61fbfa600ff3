// The state of a running controller: its node, its descriptors, the addresses of the hosts.
#ifndef XCO_CONTROLLER_STATE_H
#define XCO_CONTROLLER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "controller/node.h"
#include "common/stats.h"

#define XCO_CLIENTS_MAX 8

struct xco_socket_address {
    struct sockaddr_storage socket;
    socklen_t length; // 0: unknown
};

struct xco_shell {
    const char *path; // of the loop file
    struct xco_node node;
    struct xco_socket_address *addresses; // one per host, and one for the last other sender
    struct xco_stats stats;
    uint64_t publish_ns; // when the statistics are next written
    uint64_t timer_ns;   // the timer's setting; UINT64_MAX: disarmed
    int epoll;
    int udp;
    int timer;
    int signals;
    int listener;                 // of commands; -1: none
    int clients[XCO_CLIENTS_MAX]; // -1: free
    bool stopping;
};

#endif

// The controller's sockets, timer and signals: what the loop waits for, and what it sends by.
#ifndef XCO_CONTROLLER_SHELL_H
#define XCO_CONTROLLER_SHELL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "controller/node.h"
#include "common/stats.h"

#define XCO_CLIENTS_MAX 8

// How the program ends.
enum xco_exit {
    XCO_EXIT_STOPPED = 0,
    XCO_EXIT_FAILED = 1,     // something broke: start again
    XCO_EXIT_CONFIG = 2,     // the loop file cannot be used: starting again does not help
};

struct xco_address {
    struct sockaddr_storage socket;
    socklen_t length; // 0: not known
};

struct xco_shell {
    const char *path; // of the loop file
    struct xco_node node;
    struct xco_address *addresses; // one a host, and one of the last that is none
    struct xco_stats stats;
    uint64_t publish_ns; // when the statistics are next written
    uint64_t timer_ns;   // what the timer is set to; UINT64_MAX: nothing
    int epoll;
    int udp;
    int timer;
    int signals;
    int listener;                 // of commands; -1: none
    int clients[XCO_CLIENTS_MAX]; // -1: free
    bool stopping;
};

uint64_t xco_shell_now(void); // CLOCK_MONOTONIC in ns, as messages have it

// Opens everything; false: `problem` says what could not be opened. Close it in either case.
bool xco_shell_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_shell_close(struct xco_shell *shell);

// Watches a descriptor for input; false with errno.
bool xco_shell_watch(const struct xco_shell *shell, int descriptor);

// Where the address of a host is kept that may be none of the topology's.
struct xco_address *xco_shell_address(struct xco_shell *shell, uint16_t host);

// datagrams.c: datagrams that have arrived, so many a turn, and all that are due
void xco_shell_receive(struct xco_shell *shell);
void xco_shell_send(struct xco_shell *shell, uint64_t now_ns);

// commands.c: requests on the command socket, one a packet, each answered by a packet:
// `epoch NUMBER`, `reload`, `strategy NAME`, `stop`, `ping`; answers are `ok` or `error: ...`
bool xco_command_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_command_close(struct xco_shell *shell);
void xco_command_accept(struct xco_shell *shell);
bool xco_command_serve(struct xco_shell *shell, int descriptor); // false: not one of its clients

// Goes over to what the loop file says now; false: goes on as before, and `problem` says why.
bool xco_shell_reload(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);

// statistics.c: the statistics file
bool xco_publish_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_publish(struct xco_shell *shell, uint64_t now_ns);

#endif

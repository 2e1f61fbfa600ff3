// Opens and closes the descriptors that the loop waits for.
#include "controller/shell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "controller/engine/view.h"
#include "controller/filter.h"
#include "controller/statistics.h"
#include "qdisc/maps.h"
#include "common/clock.h"

#define RECEIVE_BUFFER (4 << 20) // a burst of 4000 reports

uint64_t xco_shell_now(void) {
    return (uint64_t)xco_now_ns();
}

bool xco_shell_watch(const struct xco_shell *shell, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    return epoll_ctl(shell->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool failed(char problem[XCO_CONFIG_PROBLEM_BYTES], const char *what) {
    (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", what, strerror(errno));
    return false;
}

static bool open_udp(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    const struct xco_controller_config *config = &shell->node.config;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found;
    char port[8];
    (void)snprintf(port, sizeof port, "%u", config->port);
    const int result = getaddrinfo(config->listen, port, &hints, &found);
    if (result != 0) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "listen %.200s: %s", config->listen,
                       gai_strerror(result));
        return false;
    }
    shell->udp = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int size = RECEIVE_BUFFER;
    bool good = shell->udp >= 0 && bind(shell->udp, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    if (!good) {
        return failed(problem, config->listen);
    }
    // A smaller buffer works as well: the next report repeats what is lost.
    (void)setsockopt(shell->udp, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    const int on = 1; // without the kernel's timestamps, the arrival is the time of reading
    (void)setsockopt(shell->udp, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    // On a host with a coordinator directives must not wait at its gates. Fails without
    // CAP_NET_ADMIN, which only such a host needs to give.
    const int class = XCO_CLASS_ROOT | XCO_MINOR_CONTROL;
    (void)setsockopt(shell->udp, SOL_SOCKET, SO_PRIORITY, &class, sizeof class);
    (void)xco_filter_attach(shell->udp); // without it, this process drops the invalid datagrams
    good = xco_shell_watch(shell, shell->udp);
    return good || failed(problem, "epoll");
}

static bool open_signals(struct xco_shell *shell) {
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return false;
    }
    shell->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return shell->signals >= 0 && xco_shell_watch(shell, shell->signals);
}

static bool open_addresses(struct xco_shell *shell) {
    free(shell->addresses);
    const size_t places = (size_t)xco_control_hosts(shell->node.core) + 1;
    shell->addresses = calloc(places, sizeof *shell->addresses);
    return shell->addresses != NULL;
}

bool xco_shell_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    shell->epoll = epoll_create1(EPOLL_CLOEXEC);
    shell->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (shell->epoll < 0 || shell->timer < 0 || !xco_shell_watch(shell, shell->timer) ||
        !open_signals(shell) || !open_addresses(shell)) {
        return failed(problem, "epoll, timerfd or signalfd");
    }
    return open_udp(shell, problem);
}

static void close_one(int *descriptor) {
    if (*descriptor >= 0) {
        (void)close(*descriptor);
    }
    *descriptor = -1;
}

void xco_shell_close(struct xco_shell *shell) {
    close_one(&shell->udp);
    close_one(&shell->timer);
    close_one(&shell->signals);
    close_one(&shell->epoll);
    xco_stats_close(&shell->stats);
    free(shell->addresses);
    shell->addresses = NULL;
    xco_node_close(&shell->node);
}

struct xco_socket_address *xco_shell_address(struct xco_shell *shell, uint16_t host) {
    const uint32_t hosts = xco_control_hosts(shell->node.core);
    return &shell->addresses[host < hosts ? host : hosts];
}

// Host numbers may have changed, so the addresses are forgotten. The listen address and the paths
// of statistics and commands stay as they were at the start.
bool xco_shell_reload(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    const uint32_t hosts = xco_control_hosts(shell->node.core);
    if (!xco_node_reload(&shell->node, shell->path, problem)) {
        return false;
    }
    if (!open_addresses(shell) || (hosts != xco_control_hosts(shell->node.core) &&
                                   !xco_controller_publish_open(shell, problem))) {
        shell->stopping = true; // part of its state is lost
        return failed(problem, "out of memory or statistics");
    }
    return true;
}

// Publishes the controller's counters and a row for each host.
#include "controller/statistics.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "controller/engine/view.h"

#define PUBLISH_EVERY_NS 50000000u

static const char *const FIELDS[] = {
#define XCO_NAME(name) #name,
    XCO_CONTROLLER_COUNTERS(XCO_NAME)
#undef XCO_NAME
        "port",
    "strategy",
};

static const char *const COLUMNS[] = {
#define XCO_NAME(name) #name,
    XCO_CONTROLLER_ROW(XCO_NAME)
#undef XCO_NAME
};

enum { COUNTERS = sizeof(struct xco_counters) / sizeof(uint64_t) };

_Static_assert(sizeof FIELDS / sizeof FIELDS[0] == COUNTERS + 2, "a name for each field");

static uint64_t bound_port(int udp) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    if (getsockname(udp, (struct sockaddr *)&address, &length) != 0) {
        return 0;
    }
    return ntohs(address.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)(const void *)&address)->sin6_port
                     : ((const struct sockaddr_in *)(const void *)&address)->sin_port);
}

bool xco_controller_publish_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    const char *path = shell->node.config.stats_path;
    xco_stats_close(&shell->stats);
    if (path[0] == '\0') {
        return true;
    }
    const struct xco_stats_layout layout = {
        .field_names = FIELDS,
        .fields = COUNTERS + 2,
        .column_names = COLUMNS,
        .columns = XCO_CONTROLLER_COLUMNS,
        .rows = xco_control_hosts(shell->node.core),
    };
    if (xco_stats_open(&shell->stats, path, &layout) != 0) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "stats %.256s: %s", path,
                       strerror(errno));
        return false;
    }
    shell->stats.header->rows_used = xco_control_hosts(shell->node.core);
    shell->publish_ns = 0;
    return true;
}

void xco_controller_publish(struct xco_shell *shell, uint64_t now_ns) {
    shell->publish_ns = now_ns + PUBLISH_EVERY_NS;
    if (shell->stats.header == NULL) {
        return;
    }
    struct xco_control *core = shell->node.core;
    xco_control_gauge(core);
    xco_stats_begin(&shell->stats);
    memcpy(shell->stats.values, xco_control_counters(core), sizeof(struct xco_counters));
    shell->stats.values[COUNTERS] = bound_port(shell->udp);
    shell->stats.values[COUNTERS + 1] = xco_control_settings_of(core)->strategy;
    for (uint32_t host = 0; host < xco_control_hosts(core); host++) {
        xco_control_row(core, host, now_ns, xco_stats_row(&shell->stats, host));
    }
    xco_stats_end(&shell->stats, now_ns);
}

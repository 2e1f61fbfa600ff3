// Reads what is simulated. The front end has checked the values; this refuses what would overflow.
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "memory.h"

struct key {
    const char *name;
    size_t offset;
    int64_t least, most;
};

#define KEY(field, least, most) {#field, offsetof(struct config, field), least, most}
#define TIME_MOST (INT64_C(3600) * 1000000000000)

static const struct key KEYS[] = {
    KEY(pods, 1, 64),
    KEY(chassis, 1, 1024),
    KEY(servers, 1, 64),
    KEY(vms, 1, 7),
    KEY(aggregations, 1, 64),
    KEY(cores, 1, 64),
    KEY(link_ps_per_byte, 1, 1000000000),
    KEY(vm_ps_per_byte, 1, 1000000000),
    KEY(hop_ps, 0, TIME_MOST),
    KEY(stack_ps, 0, TIME_MOST),
    KEY(virtual_lossless, 0, 1),
    KEY(physical_lossless, 0, 1),
    KEY(blocking, 0, 1),
    KEY(classes, 1, 2),
    KEY(background_class, 0, 1),
    KEY(virtual_queue, 4, 1000000),
    KEY(buffer, 1, 1000000000),
    KEY(mtu, 100, 9000),
    KEY(overlay, 0, 200),
    KEY(request, 1, 1000000000),
    KEY(reply, 1, 1000000000),
    KEY(tcp, TCP_NEWRENO, TCP_VEGAS),
    KEY(window, 2, 64),
    KEY(initial_window, 1, 64),
    KEY(restart_idle, 0, 1),
    KEY(rto_min_ps, 1, TIME_MOST),
    KEY(rto_slop_ps, 0, TIME_MOST),
    KEY(delayed_ack_ps, 0, TIME_MOST),
    KEY(queries, 0, 1000000),
    KEY(interval_ps, 1, TIME_MOST),
    KEY(gap_ps, 0, TIME_MOST),
    KEY(socket, 1, 1000000000),
    KEY(seed, 0, INT64_MAX),
    KEY(limit_ps, 1, TIME_MOST),
};
#define KEY_COUNT (sizeof KEYS / sizeof *KEYS)

static _Noreturn void refuse(const char *line, const char *problem) {
    fprintf(stderr, "error: %s: %.60s\n", problem, line);
    exit(2);
}

static void add_flow(struct config *config, const char *line) {
    struct flow f;
    int read = sscanf(line,
                      "flow %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                      " %" SCNd64 " %" SCNd64,
                      &f.source_host, &f.source_vm, &f.host, &f.vm, &f.bytes, &f.start_ps, &f.class,
                      &f.datagrams);
    if (read != 8 || f.bytes < 1 || f.bytes > INT64_C(1000000000) || f.start_ps < 0)
        refuse(line, "not a flow");
    config->flows = memory_grow(config->flows, config->flow_count + 1, sizeof f);
    config->flows[config->flow_count++] = f;
}

static void set_key(struct config *config, const char *line, uint64_t *seen) {
    char name[32];
    int64_t value;
    if (sscanf(line, "%31s %" SCNd64, name, &value) != 2)
        refuse(line, "not a key and a value");
    for (size_t at = 0; at < KEY_COUNT; at++) {
        if (strcmp(KEYS[at].name, name) != 0)
            continue;
        if (value < KEYS[at].least || value > KEYS[at].most)
            refuse(line, "out of range");
        memcpy((char *)config + KEYS[at].offset, &value, sizeof value);
        *seen |= UINT64_C(1) << at;
        return;
    }
    refuse(line, "unknown key");
}

static void check_flow(const struct config *config, const struct flow *flow) {
    int64_t hosts = config->chassis * config->servers;
    int inside = flow->source_host >= 0 && flow->source_host < hosts && flow->host >= 0 &&
                 flow->host < hosts && flow->source_vm >= 0 && flow->source_vm < config->vms &&
                 flow->vm >= 0 && flow->vm < config->vms;
    if (!inside || flow->class < 0 || flow->class >= config->classes ||
        (flow->source_host == flow->host && flow->source_vm == flow->vm))
        refuse("flow", "a flow between VMs or of a class that do not exist");
}

static void check(const struct config *config, uint64_t seen) {
    for (size_t at = 0; at < KEY_COUNT; at++)
        if (!(seen >> at & 1))
            refuse(KEYS[at].name, "missing key");
    if (config->chassis % config->pods)
        refuse("pods", "the chassis do not fill the pods");
    if (config->chassis * config->servers > UINT16_MAX)
        refuse("chassis", "more than 65535 servers");
    if (config->queries && config->vms < 3)
        refuse("vms", "queries need three VMs on each server");
    if (config->background_class >= config->classes)
        refuse("background_class", "no such class");
    for (uint32_t at = 0; at < config->flow_count; at++)
        check_flow(config, &config->flows[at]);
}

struct config config_read(FILE *file) {
    struct config config = {0};
    uint64_t seen = 0;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "flow ", 5) == 0)
            add_flow(&config, line);
        else
            set_key(&config, line, &seen);
    }
    check(&config, seen);
    return config;
}

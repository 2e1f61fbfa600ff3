/* Writes settings and counters as `key=value`, each after a space. */
#include "program/report.h"

#include <inttypes.h>
#include <stddef.h>

static bool has(const uint64_t vlans[64], uint32_t vlan) {
    return vlan <= ZOVN_MOST_VLAN && vlans[vlan / 64] >> vlan % 64 & 1;
}

/* As ranges: a trunk may have all. */
static void write_vlans(const uint64_t vlans[64], FILE *to) {
    const char *before = " tagged=";
    for (uint32_t first = 1; first <= ZOVN_MOST_VLAN; first++) {
        uint32_t last = first;
        if (!has(vlans, first))
            continue;
        while (has(vlans, last + 1))
            last++;
        fprintf(to, "%s%" PRIu32, before, first);
        if (last > first)
            fprintf(to, "-%" PRIu32, last);
        before = ",";
        first = last;
    }
}

void zovn_report_settings(const struct zovn_port_options *options, FILE *to) {
    static const char *const TRUST[] = {"nothing", "priority", "dscp"};
    const struct zovn_port_settings *settings = &options->settings;
    fprintf(to, " vlan=%d trunk=%d class=%d trust=%s offloads=%d queues=%u rate=%" PRIu64,
            settings->vlan, settings->trunk, settings->class, TRUST[settings->trust],
            options->offloads, options->queues, settings->rate_bps);
    write_vlans(settings->vlans, to);
}

static const char *const REASONS[ZOVN_REASONS] = {
    [ZOVN_CONGESTION] = "congestion",
    [ZOVN_STALLED] = "stalled",
    [ZOVN_MALFORMED] = "malformed",
    [ZOVN_TOO_LONG] = "too_long",
    [ZOVN_NO_DESTINATION] = "no_destination",
    [ZOVN_RESERVED] = "reserved",
    [ZOVN_VLAN] = "vlan",
    [ZOVN_OFFLOAD] = "offload",
    [ZOVN_STOPPED] = "stopped",
    [ZOVN_REMOVED] = "removed",
    [ZOVN_NO_LOCATION] = "no_location",
    [ZOVN_REFUSED] = "refused",
};

#define FIELD(name) {#name, offsetof(struct zovn_counters, name)}

static const struct {
    const char *name;
    size_t at;
} FIELDS[] = {
    FIELD(in),      FIELD(in_bytes),      FIELD(copies),     FIELD(delivered),  FIELD(held),
    FIELD(parked),  FIELD(out),           FIELD(out_bytes),  FIELD(marked),     FIELD(finished),
    FIELD(waiting), FIELD(waiting_bytes), FIELD(blocked_ns), FIELD(longest_ns), FIELD(stalls),
    FIELD(moves),   FIELD(not_learned),   FIELD(beyond),     FIELD(unsound),    FIELD(pauses_sent),
    FIELD(pauses),  FIELD(paused_ns),
};

static const char *fault_name(enum zovn_fault fault) {
    static const char *const NAMES[] = {
        [ZOVN_SOUND] = "none",
        [ZOVN_AVAIL_JUMP] = "avail_jump",
        [ZOVN_HEAD_RANGE] = "head_range",
        [ZOVN_HEAD_TWICE] = "head_twice",
        [ZOVN_PEER_GONE] = "peer_gone",
        [ZOVN_MEMORY_GONE] = "memory_gone",
    };
    return NAMES[fault];
}

void zovn_report_state(const struct zovn_line_state *state, FILE *to) {
    const struct zovn_counters *counters = &state->port.counters;
    if (state->attached)
        fprintf(to, " thread=%d", state->port.thread);
    fprintf(to, " stall=%d fault=%s", state->port.stalled, fault_name(state->port.fault));
    for (uint32_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
        fprintf(to, " %s=%" PRIu64, FIELDS[i].name,
                *(const uint64_t *)(const void *)((const char *)counters + FIELDS[i].at));
    for (uint32_t i = 0; i < ZOVN_REASONS; i++)
        fprintf(to, " drop_%s=%" PRIu64, REASONS[i], counters->drops[i]);
}

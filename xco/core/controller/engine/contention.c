// On demand: finds the links that their senders could congest, and coordinates only those senders.
//
// A sender counts on a link with its whole rate C_x as soon as it has a backlog or sends at more
// than a twentieth of it, otherwise with its present rate. A link is contended if its senders sum
// up to more than its capacity. It leaves contention after `calm_ns` without it.
#include "controller/engine/contention.h"

#include "controller/engine/outbox.h"
#include "controller/engine/slices.h"

#define ACTIVE_SHARE 20u

static bool is_big(const struct xco_control *core, uint32_t host, const struct xco_waiting *entry) {
    const uint64_t rate = xco_network_host_rate(&core->network, host);
    return entry->backlog_bytes > 0 || entry->rate_kbps * UINT64_C(1000) >= rate / ACTIVE_SHARE;
}

// Counts a flow on the links of its path; a big sender counts once on each, for all its flows.
static void count_flow(struct xco_control *core, uint32_t host, const struct xco_waiting *entry) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, host, entry->destination, path);
    const bool big = is_big(core, host, entry);
    for (size_t i = 0; i < length; i++) {
        struct xco_channel *channel = &core->channels[path[i]];
        if (!big) {
            channel->demand_bps += entry->rate_kbps * UINT64_C(1000);
        } else if (channel->seen_host != host) {
            channel->seen_host = host;
            channel->demand_bps += xco_network_host_rate(&core->network, host);
        }
    }
}

static bool is_counted(const struct xco_control *core, uint32_t host,
                       const struct xco_waiting *entry) {
    return entry->destination < core->network.hosts && entry->destination != host &&
           (entry->backlog_bytes > 0 || entry->rate_kbps > 0);
}

static void count_demand(struct xco_control *core) {
    for (uint32_t link = 0; link < xco_network_directed(&core->network); link++) {
        core->channels[link].demand_bps = 0;
        core->channels[link].seen_host = XCO_NONE;
    }
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        const struct xco_peer *peer = core->peers[host];
        for (size_t i = 0; peer != NULL && peer->joined && i < peer->report.count; i++) {
            if (is_counted(core, host, &peer->report.entries[i])) {
                count_flow(core, host, &peer->report.entries[i]);
                core->plan_visits++;
            }
        }
    }
}

// Checks all links; returns whether to check one again even without a new report.
static bool judge_links(struct xco_control *core, uint64_t now_ns) {
    bool again = false;
    for (uint32_t link = 0; link < xco_network_directed(&core->network); link++) {
        struct xco_channel *channel = &core->channels[link];
        if (channel->demand_bps > xco_network_capacity(&core->network, link)) {
            channel->contended = true;
            channel->contended_ns = now_ns;
        } else if (channel->contended) {
            channel->contended = now_ns < channel->contended_ns + core->settings.calm_ns;
        }
        again = again || channel->contended;
    }
    return again;
}

static bool crosses_contention(const struct xco_control *core, uint32_t host) {
    const struct xco_report *report = &core->peers[host]->report;
    uint32_t path[XCO_PATH_MAX];
    for (size_t i = 0; i < report->count; i++) {
        if (!is_counted(core, host, &report->entries[i])) {
            continue;
        }
        const size_t length =
            xco_network_path(&core->network, host, report->entries[i].destination, path);
        for (size_t j = 0; j < length; j++) {
            if (core->channels[path[j]].contended) {
                return true;
            }
        }
    }
    return false;
}

static void open_host(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    core->peers[host]->coordinated = false;
    xco_slices_leave(core, now_ns, host, now_ns);
    const struct xco_directive plan = {.mode = XCO_OPEN, .start_ns = now_ns};
    xco_control_plan(core, host, &plan, now_ns);
}

// The queues of an open host are unknown; it reports them once it is closed.
static void coordinate_host(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    core->peers[host]->coordinated = true;
    const struct xco_directive plan = {.mode = XCO_CLOSED, .start_ns = now_ns};
    xco_control_plan(core, host, &plan, now_ns);
    if (xco_grants_slices(core->settings.strategy)) {
        xco_slices_reported(core, now_ns, host);
    }
}

// A host that pauses stays coordinated for a while: its next burst must not meet those of others.
static void judge_host(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    if (crosses_contention(core, host)) {
        peer->needed_ns = now_ns;
        if (!peer->coordinated) {
            coordinate_host(core, now_ns, host);
        }
    } else if (peer->coordinated && now_ns >= peer->needed_ns + core->settings.calm_ns) {
        open_host(core, now_ns, host);
    }
}

void xco_contention_census(struct xco_control *core, uint64_t now_ns) {
    count_demand(core);
    bool again = judge_links(core, now_ns);
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->joined) {
            judge_host(core, now_ns, host);
            again = again || core->peers[host]->coordinated;
        }
    }
    if (again) {
        xco_control_plan_at(core, now_ns + core->settings.calm_ns / 4 + 1);
    }
}

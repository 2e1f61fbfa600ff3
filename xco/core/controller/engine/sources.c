// The strategy `gcc`, law `published`: the rates of pairs of hosts, by the marks of ports.
#include "controller/engine/sources.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/steps.h"
#include "controller/engine/outbox.h"
#include "controller/engine/published.h"

// The pairs of one source.
struct xco_sources {
    double line_bps;
    double share_bps; // of the line, by the number of pairs that send
    size_t count;
    struct xco_source list[XCO_ENTRIES_MAX];
};

static struct xco_source *find(struct xco_sources *sources, uint32_t destination) {
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->list[i].destination == destination) {
            return &sources->list[i];
        }
    }
    return NULL;
}

// Returns the place for a new pair: a free one, or that of the pair that was silent longest.
static struct xco_source *place(struct xco_sources *sources) {
    if (sources->count < XCO_ENTRIES_MAX) {
        return &sources->list[sources->count++];
    }
    struct xco_source *oldest = &sources->list[0];
    for (size_t i = 1; i < sources->count; i++) {
        if (sources->list[i].sent_ns < oldest->sent_ns) {
            oldest = &sources->list[i];
        }
    }
    return oldest;
}

static struct xco_sources *sources_of(struct xco_control *core, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    if (peer->sources == NULL) {
        peer->sources = calloc(1, sizeof *peer->sources);
        core->failed = core->failed || peer->sources == NULL;
    }
    return peer->sources;
}

static void note(struct xco_sources *sources, uint64_t now_ns, const struct xco_fill_flow *flows,
                 size_t own) {
    for (size_t i = 0; i < own; i++) { // the known ones first: a new one may take another's place
        struct xco_source *source = find(sources, flows[i].destination);
        if (source != NULL && now_ns - source->sent_ns < XCO_STEP_INACTIVE_NS) {
            source->sent_ns = now_ns;
        }
    }
    for (size_t i = 0; i < own; i++) {
        struct xco_source *source = find(sources, flows[i].destination);
        if (source == NULL || source->sent_ns != now_ns) {
            source = source == NULL ? place(sources) : source;
            *source = (struct xco_source){.rate_bps = sources->share_bps,
                                          .sent_ns = now_ns,
                                          .destination = (uint16_t)flows[i].destination};
        }
    }
}

// Notes the flows of the first one's source; returns their number, 0: no memory.
static size_t note_host(struct xco_control *core, uint64_t now_ns,
                        const struct xco_fill_flow *flows, size_t count) {
    const uint32_t host = flows->source;
    struct xco_sources *sources = sources_of(core, host);
    size_t own = 0;
    while (own < count && flows[own].source == host) {
        own++;
    }
    if (sources == NULL) {
        return 0;
    }
    sources->line_bps = (double)xco_network_host_rate(&core->network, host);
    sources->share_bps = sources->line_bps / (double)own;
    note(sources, now_ns, flows, own);
    return own;
}

static void count_through(struct xco_control *core, const struct xco_fill_flow *flows,
                          size_t count) {
    uint32_t path[XCO_PATH_MAX];
    memset(core->fill.load, 0, xco_network_directed(&core->network) * sizeof *core->fill.load);
    for (size_t i = 0; i < count; i++) {
        const size_t length =
            xco_network_path(&core->network, flows[i].source, flows[i].destination, path);
        for (size_t j = 0; j < length; j++) {
            core->fill.load[path[j]]++;
        }
        core->fill.visits += length;
    }
}

// Tells a flow its part of the marks of each port on its way (Algorithm 4, lines 12 to 22).
static void notify(struct xco_control *core, uint64_t now_ns, const struct xco_fill_flow *flow) {
    struct xco_sources *sources = core->peers[flow->source]->sources;
    struct xco_source *source = find(sources, flow->destination);
    const double unit_bps = xco_step_bps(sources->line_bps);
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, flow->source, flow->destination, path);
    for (size_t i = 0; i < length; i++) {
        const double marks = core->ports[path[i]].new_marks / (double)core->fill.load[path[i]];
        xco_source_notified(source, marks, now_ns, unit_bps, XCO_STEP_PERIOD_NS);
    }
}

static void update(struct xco_sources *sources, uint64_t now_ns) {
    const double unit_bps = xco_step_bps(sources->line_bps);
    size_t kept = 0;
    for (size_t i = 0; i < sources->count; i++) {
        struct xco_source source = sources->list[i];
        if (xco_source_updated(&source, now_ns, sources->share_bps, unit_bps, XCO_STEP_PERIOD_NS)) {
            source.rate_bps = fmax(source.rate_bps, XCO_STEP_LEAST * sources->line_bps);
            sources->list[kept++] = source;
        }
    }
    sources->count = kept;
}

// Lets a period end for all pairs; notes whether any is left.
static void turn(struct xco_control *core, uint64_t now_ns, const struct xco_fill_flow *flows,
                 size_t count) {
    count_through(core, flows, count);
    for (size_t i = 0; i < count; i++) {
        notify(core, now_ns, &flows[i]);
    }
    core->turned_ns = now_ns;
    core->turning = false;
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->sources != NULL) {
            update(core->peers[host]->sources, now_ns);
            core->turning = core->turning || core->peers[host]->sources->count > 0;
        }
    }
    for (uint32_t link = 0; link < xco_network_directed(&core->network); link++) {
        core->ports[link].new_marks = 0;
    }
}

static uint64_t rate_of(const struct xco_control *core, const struct xco_fill_flow *flow) {
    struct xco_sources *sources = core->peers[flow->source]->sources;
    const struct xco_source *source = find(sources, flow->destination);
    return (uint64_t)fmax(1.0, fmin(source->rate_bps, sources->share_bps)); // 0 is no limit
}

void xco_sources_plan(struct xco_control *core, uint64_t now_ns, struct xco_fill_flow *flows,
                      size_t count) {
    size_t noted = 0;
    core->fill.visits = count;
    while (noted < count && !core->failed) {
        noted += note_host(core, now_ns, flows + noted, count - noted);
    }
    if (core->failed) {
        return;
    }
    if (now_ns - core->turned_ns >= XCO_STEP_PERIOD_NS) {
        turn(core, now_ns, flows, count);
    }
    for (size_t i = 0; i < count; i++) {
        flows[i].rate_bps = rate_of(core, &flows[i]);
    }
    if (core->turning || count > 0) {
        xco_control_plan_at(core, core->turned_ns + XCO_STEP_PERIOD_NS);
    }
}

// V2V flows with a queue of their own, candidates for one, and idle ones.
#include "coordinator/engine/flows.h"

#include <string.h>

#define PROBES 8 // slots in which a candidate may be

static bool same(const struct xco_pair *a, const struct xco_pair *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static uint32_t hash(const struct xco_pair *pair) {
    uint32_t words[sizeof *pair / sizeof(uint32_t)], value = 2166136261u;
    memcpy(words, pair, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        value = (value ^ words[i]) * 16777619u; // FNV-1a
    }
    return value ^ value >> 15;
}

// Returns the pair's candidate, or the best slot to reuse for it: the oldest candidate's. A flood
// of new addresses delays other flows' queues, but takes none away.
static struct xco_candidate *candidate_of(struct xco_flows *flows, const struct xco_pair *pair) {
    uint32_t start = hash(pair);
    struct xco_candidate *oldest = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct xco_candidate *place = &flows->candidates[(start + i) % XCO_CANDIDATES];
        if (place->used && same(&place->pair, pair)) {
            return place;
        }
        bool older =
            oldest != NULL && oldest->used && (!place->used || place->since_ns < oldest->since_ns);
        oldest = oldest == NULL || older ? place : oldest;
    }
    *oldest = (struct xco_candidate){.pair = *pair};
    return oldest;
}

bool xco_flows_see(struct xco_flows *flows, int64_t now_ns, const struct xco_sight *sight,
                   bool crowded, int64_t *since_ns) {
    struct xco_candidate *candidate = candidate_of(flows, &sight->pair);
    if (!candidate->used || now_ns - candidate->since_ns > flows->window_ns) {
        candidate->used = true;
        candidate->since_ns = now_ns;
        candidate->bytes = 0;
    }
    candidate->bytes += sight->bytes;
    *since_ns = candidate->since_ns;
    if (candidate->bytes < flows->large_bytes && !crowded) {
        return false;
    }
    candidate->used = false;
    return true;
}

bool xco_flows_room(const struct xco_flows *flows, unsigned gate, unsigned spare) {
    bool outside = gate == XCO_OUTSIDE;
    return flows->count + spare < XCO_FLOWS &&
           (!outside || flows->outside + spare < XCO_FLOWS_OUTSIDE);
}

int xco_flows_add(struct xco_flows *flows, int64_t now_ns, const struct xco_pair *pair,
                  unsigned gate) {
    int free = -1;
    for (unsigned flow = XCO_FLOWS; flow-- > 0;) {
        if (!flows->table[flow].used) {
            free = (int)flow;
        } else if (same(&flows->table[flow].pair, pair)) {
            return -1;
        }
    }
    if (free >= 0) {
        flows->table[free] =
            (struct xco_v2v_flow){.used = true, .gate = gate, .pair = *pair, .active_ns = now_ns};
        flows->count++;
        flows->outside += gate == XCO_OUTSIDE;
    }
    return free;
}

void xco_flows_remove(struct xco_flows *flows, unsigned flow) {
    struct xco_v2v_flow *entry = &flows->table[flow];
    flows->count -= entry->used;
    flows->outside -= entry->used && entry->gate == XCO_OUTSIDE;
    entry->used = false;
}

void xco_flows_look(struct xco_flows *flows, int64_t now_ns, unsigned flow, uint64_t sent_bytes,
                    uint32_t backlog_bytes) {
    struct xco_v2v_flow *entry = &flows->table[flow];
    if (sent_bytes != entry->sent_bytes || backlog_bytes > 0) {
        entry->active_ns = now_ns;
    }
    entry->sent_bytes = sent_bytes;
    entry->backlog_bytes = backlog_bytes;
}

bool xco_flows_idle(const struct xco_flows *flows, int64_t now_ns, unsigned flow) {
    const struct xco_v2v_flow *entry = &flows->table[flow];
    return entry->used && now_ns - entry->active_ns > flows->idle_ns;
}

bool xco_flows_behind(const struct xco_flows *flows, unsigned gate) {
    for (unsigned flow = 0; flow < XCO_FLOWS; flow++) {
        if (flows->table[flow].used && flows->table[flow].gate == gate) {
            return true;
        }
    }
    return false;
}

size_t xco_flows_pairs(const struct xco_flows *flows, struct xco_pair pairs[XCO_FLOWS]) {
    size_t count = 0;
    for (unsigned flow = 0; flow < XCO_FLOWS; flow++) {
        if (flows->table[flow].used) {
            pairs[count++] = flows->table[flow].pair;
        }
    }
    return count;
}

/* The aligned mode: backlog kept in bits or rings, a maximal set granted for each slot. */
#include "schedule_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(const struct xco_schedule *s) {
    uint64_t fastest = 0, slowest = UINT64_MAX;
    for (uint32_t i = 0; i < s->node_count; i++) {
        uint64_t capacity = s->nodes[i].capacity[UP];
        if (s->nodes[i].parent == XCO_NONE && i < s->host_count)
            return false;
        if (i < s->host_count && capacity > fastest)
            fastest = capacity;
        if (s->nodes[i].parent != XCO_NONE && capacity < slowest)
            slowest = capacity;
    }
    return fastest <= slowest;
}

struct slots *slots_new(const struct xco_schedule *s) {
    struct slots *slots = calloc(1, sizeof *slots);
    if (!slots)
        return NULL;
    size_t hosts = s->host_count;
    slots->words = hosts <= MOST_DENSE ? (uint32_t)((hosts + 63) / 64) : 0;
    slots->least = s->classes ? s->class_least[0] : 0;
    slots->plain = is_plain(s);
    slots->rows = calloc(hosts * slots->words + 1, sizeof *slots->rows);
    slots->open = calloc(slots->words + 1, sizeof *slots->open);
    slots->cursor = calloc(hosts, sizeof *slots->cursor);
    slots->turn = calloc(hosts, sizeof *slots->turn);
    slots->backlog = calloc(hosts, sizeof *slots->backlog);
    slots->sending = malloc(hosts * sizeof *slots->sending);
    if (!slots->rows || !slots->open || !slots->cursor || !slots->turn || !slots->backlog ||
        !slots->sending) {
        slots_free(slots);
        return NULL;
    }
    memset(slots->sending, 0xff, hosts * sizeof *slots->sending);
    return slots;
}

void slots_free(struct slots *slots) {
    if (!slots)
        return;
    free(slots->rows);
    free(slots->open);
    free(slots->cursor);
    free(slots->turn);
    free(slots->backlog);
    free(slots->sending);
    free(slots);
}

size_t slots_bytes(const struct xco_schedule *s) {
    if (!s->slots)
        return 0;
    size_t words = ((size_t)s->host_count + 1) * s->slots->words;
    return sizeof *s->slots + words * sizeof(uint64_t) +
           4 * (size_t)s->host_count * sizeof(uint32_t);
}

int slots_room(struct xco_schedule *s, size_t more) {
    return s->slots && s->slots->words ? 0 : flows_room(s, more);
}

void slots_add(struct xco_schedule *s, uint32_t host, uint32_t destination) {
    struct slots *slots = s->slots;
    slots->fresh = false;
    if (!slots->words) {
        uint32_t found = flow_find(s, host, destination);
        slots->backlog[host] += found == XCO_NONE;
        uint32_t flow = found == XCO_NONE ? flow_make(s, host, destination) : found;
        s->flows[flow].group = s->group;
        return;
    }
    uint64_t *word = row_of(slots, host) + destination / 64, bit = (uint64_t)1 << destination % 64;
    slots->backlog[host] += !(*word & bit);
    *word |= bit;
}

static void remove_one(struct xco_schedule *s, uint32_t host, uint32_t destination) {
    struct slots *slots = s->slots;
    if (!slots->words) {
        uint32_t flow = flow_find(s, host, destination);
        if (flow != XCO_NONE) {
            flow_forget(s, flow);
            slots->backlog[host]--;
        }
        return;
    }
    uint64_t *word = row_of(slots, host) + destination / 64, bit = (uint64_t)1 << destination % 64;
    slots->backlog[host] -= (*word & bit) != 0;
    *word &= ~bit;
}

/* Drop what is not of the group at hand. */
static void drop_rest(struct xco_schedule *s, uint32_t host) {
    uint32_t at = s->hosts[host].flows;
    for (uint32_t left = s->slots->backlog[host]; left > 0; left--) {
        uint32_t next = s->flows[at].after;
        if (s->flows[at].group != s->group) {
            flow_forget(s, at);
            s->slots->backlog[host]--;
        }
        at = next;
    }
}

void slots_set(struct xco_schedule *s, uint32_t host, const uint32_t *destinations, size_t count) {
    struct slots *slots = s->slots;
    slots->fresh = false;
    if (slots->words) {
        memset(row_of(slots, host), 0, slots->words * sizeof(uint64_t));
        slots->backlog[host] = 0;
    }
    for (size_t i = 0; i < count; i++)
        slots_add(s, host, destinations[i]);
    if (!slots->words)
        drop_rest(s, host);
}

void slots_gave_up(struct xco_schedule *s, uint32_t host) {
    if (s->slots->sending[host] != XCO_NONE)
        remove_one(s, host, s->slots->sending[host]);
}

void slots_leave(struct xco_schedule *s, uint32_t host) {
    uint32_t destination = s->slots->sending[host];
    s->slots->sending[host] = XCO_NONE;
    if (destination != XCO_NONE) {
        struct flow flow = {.host = host, .destination = destination};
        path_release(s, &flow, s->hosts[host].rate);
    }
    s->group++;
    slots_set(s, host, NULL, 0);
}

struct xco_grant slots_current(const struct xco_schedule *s, uint32_t host) {
    uint32_t destination = s->slots->sending[host];
    return (struct xco_grant){host, destination,
                              destination == XCO_NONE ? 0 : s->hosts[host].rate};
}

uint32_t slots_backlog(const struct xco_schedule *s, uint32_t host) {
    return s->slots->backlog[host];
}

static bool is_backlogged(const struct xco_schedule *s, uint32_t host, uint32_t destination) {
    if (!s->slots->words)
        return flow_find(s, host, destination) != XCO_NONE;
    return row_of(s->slots, host)[destination / 64] >> destination % 64 & 1;
}

static const char *check_host(const struct xco_schedule *s, uint32_t host) {
    uint32_t backlog = 0;
    for (uint32_t d = 0; d < s->host_count; d++) {
        if (d == host || !is_backlogged(s, host, d))
            continue;
        backlog++;
        if (s->slots->fresh && s->slots->sending[host] == XCO_NONE && slot_rate(s, host, d))
            return "a flow that fits is not granted in this slot";
    }
    return backlog == s->slots->backlog[host] ? NULL : "a host's backlog is miscounted";
}

/* Use is the sum of what was granted: put on a copy of nothing, it must come out the same. */
static const char *check_use(const struct xco_schedule *s) {
    uint64_t granted = 0, used = 0;
    uint32_t link;
    for (uint32_t x = 0; x < s->host_count; x++) {
        if (s->slots->sending[x] == XCO_NONE)
            continue;
        FOR_PATH(s->nodes, x, s->slots->sending[x], link)
            granted += s->hosts[x].rate;
    }
    for (uint32_t i = 0; i < 2 * s->link_count; i++) {
        const struct node *node = &s->nodes[s->directed[i] >> 1];
        uint32_t way = s->directed[i] & 1;
        if (node->free[way] > node->capacity[way])
            return "a link is used beyond its capacity";
        used += node->capacity[way] - node->free[way];
    }
    return granted == used ? NULL : "the use of links is not the sum of what is granted";
}

const char *slots_check(const struct xco_schedule *s) {
    const char *wrong = check_use(s);
    for (uint32_t x = 0; x < s->host_count && !wrong; x++)
        wrong = check_host(s, x);
    return wrong;
}

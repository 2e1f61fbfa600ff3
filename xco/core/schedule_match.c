/* One slot of the aligned mode: hosts choose in turns among what is left. */
#include <errno.h>
#include <string.h>

#include "schedule_slots.h"

/* All links are free again. */
static void reset(struct xco_schedule *s) {
    struct slots *slots = s->slots;
    for (uint32_t i = 0; i < s->node_count; i++) {
        s->nodes[i].free[UP] = s->nodes[i].capacity[UP];
        s->nodes[i].free[DOWN] = s->nodes[i].capacity[DOWN];
    }
    memset(slots->open, 0xff, slots->words * sizeof *slots->open);
    memset(slots->sending, 0xff, s->host_count * sizeof *slots->sending);
}

static void take(struct xco_schedule *s, uint32_t host, uint32_t destination, uint64_t rate) {
    struct slots *slots = s->slots;
    struct flow flow = {.host = host, .destination = destination};
    path_occupy(s, &flow, rate);
    slots->sending[host] = destination;
    s->hosts[host].rate = rate;
    if (slots->words && link_free(s, 2 * destination + DOWN) < slots->least)
        slots->open[destination / 64] &= ~((uint64_t)1 << destination % 64);
}

/* Take the first destination of these bits that fits. */
static bool take_of(struct xco_schedule *s, uint32_t host, uint32_t word, uint64_t bits,
                    uint32_t *pointer) {
    for (; bits; bits &= bits - 1) {
        uint32_t destination = 64 * word + (uint32_t)__builtin_ctzll(bits);
        uint64_t rate = slot_rate(s, host, destination);
        if (rate == 0)
            continue;
        take(s, host, destination, rate);
        *pointer = destination + 1 < s->host_count ? destination + 1 : 0;
        return true;
    }
    return false;
}

/* Go round a host's row of bits, from its pointer on, over what is still open. */
static bool choose_bits(struct xco_schedule *s, uint32_t host, uint32_t *pointer) {
    const struct slots *slots = s->slots;
    const uint64_t *row = row_of(slots, host);
    uint32_t start = *pointer / 64, word = start;
    uint64_t from = UINT64_MAX << *pointer % 64;
    if (take_of(s, host, word, row[word] & slots->open[word] & from, pointer))
        return true;
    for (uint32_t left = slots->words - 1; left > 0; left--) {
        word = word + 1 < slots->words ? word + 1 : 0;
        uint64_t bits = row[word] & slots->open[word];
        if (bits && take_of(s, host, word, bits, pointer))
            return true;
    }
    return take_of(s, host, start, row[start] & slots->open[start] & ~from, pointer);
}

/* Go round a host's ring of flows; the one that is granted becomes its last. */
static bool choose_flow(struct xco_schedule *s, uint32_t host) {
    uint32_t at = s->hosts[host].flows;
    for (uint32_t left = s->slots->backlog[host]; left > 0; left--, at = s->flows[at].after) {
        uint64_t rate = slot_rate(s, host, s->flows[at].destination);
        if (rate == 0)
            continue;
        take(s, host, s->flows[at].destination, rate);
        ring_last(s, at);
        return true;
    }
    return false;
}

static bool choose(struct xco_schedule *s, uint32_t host, bool first) {
    struct slots *slots = s->slots;
    if (slots->backlog[host] == 0)
        return false;
    if (!slots->words)
        return choose_flow(s, host);
    return choose_bits(s, host, first ? &slots->turn[host] : &slots->cursor[host]);
}

int xco_schedule_slot(struct xco_schedule *s, uint64_t now_ns, struct xco_grant *grants) {
    if (!s->aligned)
        return -EINVAL;
    s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
    reset(s);
    int count = 0;
    uint32_t host = s->slots->first;
    s->slots->first = host + 1 < s->host_count ? host + 1 : 0;
    for (uint32_t i = 0; i < s->host_count; i++) {
        if (choose(s, host, i == 0))
            grants[count++] = slots_current(s, host);
        host = host + 1 < s->host_count ? host + 1 : 0;
    }
    s->slots->fresh = true;
    return count;
}

int xco_schedule_gave_up_all(struct xco_schedule *s, const uint32_t *hosts, size_t count) {
    if (!s->aligned)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (hosts[i] >= s->host_count)
            return -EINVAL;
    for (size_t i = 0; i < count; i++)
        slots_gave_up(s, hosts[i]);
    return 0;
}

/* The places where flows are parked: by class of rate, and by link or pair of links. */
#include <errno.h>
#include <stdlib.h>

#include "scheduler/internal.h"

static int by_rate(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Flows are parked separately by their full rate, which is always some link's capacity, so that
 * a link with less left skips the flows that need more. */
int classes_make(struct xco_schedule *s, const struct xco_schedule_options *o) {
    s->class_rate = malloc((s->link_count + 1) * sizeof *s->class_rate);
    if (!s->class_rate)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->link_count; i++)
        s->class_rate[i] = o->links[i].capacity_bps;
    qsort(s->class_rate, s->link_count, sizeof *s->class_rate, by_rate);
    for (uint32_t i = 0; i < s->link_count; i++)
        if (i == 0 || s->class_rate[i] != s->class_rate[i - 1])
            s->class_rate[s->classes++] = s->class_rate[i];
    return 0;
}

/* Number the switches below each node, and the places for flows between two of them. */
int siblings_make(struct xco_schedule *s) {
    s->siblings = calloc(s->node_count, sizeof *s->siblings);
    s->children = malloc(s->node_count * sizeof *s->children);
    s->ordinal = calloc(s->node_count, sizeof *s->ordinal);
    s->paired = calloc(link_sources(s), sizeof *s->paired);
    if (!s->siblings || !s->children || !s->ordinal || !s->paired)
        return -ENOMEM;
    for (uint32_t i = s->host_count; i < s->node_count; i++)
        if (s->nodes[i].parent != XCO_NONE)
            s->ordinal[i] = s->siblings[s->nodes[i].parent].count++;
    uint32_t first = 0;
    s->place_count = first_pair(s);
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct siblings *all = &s->siblings[i];
        all->first = first;
        all->pairs = (uint32_t)s->place_count;
        first += all->count;
        s->place_count += (size_t)all->count * all->count * s->classes;
    }
    for (uint32_t i = s->host_count; i < s->node_count; i++)
        if (s->nodes[i].parent != XCO_NONE)
            s->children[s->siblings[s->nodes[i].parent].first + s->ordinal[i]] = i;
    return s->place_count < AT_REST ? 0 : -ENOMEM;
}

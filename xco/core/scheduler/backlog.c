/* The backlog, by source and by destination: short rows that a processor reads in one go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

void backlog_init(struct backlog *backlog) {
    backlog->entries = backlog->first;
    backlog->room = FIRST_ENTRIES;
    backlog->count = 0;
}

void backlog_free(struct backlog *backlog) {
    if (backlog->entries != backlog->first)
        free(backlog->entries);
}

static int room_for(struct xco_schedule *s, struct backlog *backlog, size_t more) {
    size_t wanted = backlog->count + more, room = backlog->room;
    if (wanted <= room)
        return 0;
    while (room < wanted)
        room *= 2;
    bool moved = backlog->entries != backlog->first;
    struct entry *entries = realloc(moved ? backlog->entries : NULL, room * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    if (!moved)
        memcpy(entries, backlog->first, sizeof backlog->first);
    s->entry_room += room - (moved ? backlog->room : 0);
    backlog->entries = entries;
    backlog->room = (uint32_t)room;
    return 0;
}

/* The memory of a former backlog is not kept. */
static void give_back(struct xco_schedule *s, struct backlog *backlog) {
    if (backlog->count > FIRST_ENTRIES / 2 || backlog->entries == backlog->first)
        return;
    memcpy(backlog->first, backlog->entries, backlog->count * sizeof *backlog->entries);
    s->entry_room -= backlog->room;
    free(backlog->entries);
    backlog->entries = backlog->first;
    backlog->room = FIRST_ENTRIES;
}

int backlog_room(struct xco_schedule *s, uint32_t host, const uint32_t *destinations,
                 size_t count) {
    int result = flows_room(s, count);
    if (result == 0)
        result = room_for(s, &s->from[host], count);
    for (size_t i = 0; result == 0 && i < count; i++)
        result = room_for(s, &s->to[destinations[i]], 1);
    return result;
}

void backlog_add(struct xco_schedule *s, uint32_t flow) {
    struct flow *new = &s->flows[flow];
    struct backlog *from = &s->from[new->host], *to = &s->to[new->destination];
    new->at_source = from->count++;
    new->at_target = to->count++;
    from->entries[new->at_source] = (struct entry){flow, new->destination, new->rank};
    to->entries[new->at_target] = (struct entry){flow, new->host, new->rank};
}

/* The last entries move into the slots of removed ones. */
void backlog_remove(struct xco_schedule *s, uint32_t flow) {
    const struct flow *old = &s->flows[flow];
    struct backlog *from = &s->from[old->host], *to = &s->to[old->destination];
    struct entry last = from->entries[--from->count];
    from->entries[old->at_source] = last;
    s->flows[last.flow].at_source = old->at_source;
    last = to->entries[--to->count];
    to->entries[old->at_target] = last;
    s->flows[last.flow].at_target = old->at_target;
    give_back(s, from);
    give_back(s, to);
}

void backlog_rank(struct xco_schedule *s, uint32_t flow) {
    const struct flow *now = &s->flows[flow];
    s->from[now->host].entries[now->at_source].rank = now->rank;
    s->to[now->destination].entries[now->at_target].rank = now->rank;
}

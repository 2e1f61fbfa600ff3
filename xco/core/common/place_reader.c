// Reads and fills messages with logs of addresses.
#include "common/place_reader.h"

bool xco_place_reader_init(struct xco_place_reader *reader, uint32_t room) {
    *reader = (struct xco_place_reader){0};
    return xco_place_log_init(&reader->seen, room);
}

void xco_place_reader_free(struct xco_place_reader *reader) {
    xco_place_log_free(&reader->seen);
}

bool xco_place_reader_follow(struct xco_place_reader *reader, const struct xco_map *map) {
    if (map->from != 0 && map->from != reader->have) {
        return false;
    }
    if (map->from == 0) {
        reader->again = true;
        xco_place_log_clear(&reader->seen);
    }
    for (size_t i = 0; i < map->count; i++) {
        xco_place_log_set(&reader->seen, &map->entries[i].place, map->entries[i].host);
        reader->unswept = reader->unswept || map->entries[i].place.kind == XCO_PLACE_HOST;
    }
    reader->have = map->until;
    reader->last = map->last;
    return true;
}

bool xco_place_reader_is_whole(struct xco_place_reader *reader, const struct xco_map *map) {
    const bool whole = reader->again && map->until == map->last;
    reader->again = reader->again && !whole;
    reader->unswept = reader->unswept || whole;
    return whole;
}

bool xco_place_reader_may_sweep(const struct xco_place_reader *reader) {
    return reader->unswept && !reader->again && reader->have == reader->last;
}

struct sweep {
    const struct xco_place_log *seen, *log;
    xco_place_taker take;
    void *context;
};

static void sweep(void *context, const struct xco_place *place) {
    const struct sweep *of = context;
    const struct xco_place all = xco_place_of_host(xco_place_log_find(of->log, place));
    if (xco_place_log_find(of->seen, &all) != XCO_NOWHERE) {
        of->take(of->context, place);
    }
}

void xco_place_reader_sweep(struct xco_place_reader *reader, const struct xco_place_log *log,
                            xco_place_taker take, void *context) {
    struct sweep of = {&reader->seen, log, take, context};
    reader->unswept = false;
    xco_place_log_missing(log, &reader->seen, sweep, &of);
}

void xco_place_fill(const struct xco_place_log *log, uint64_t heard, struct xco_map *map) {
    const bool can_go_on = heard >= log->floor && heard <= log->version;
    map->from = can_go_on ? heard : 0;
    map->count =
        (uint16_t)xco_place_log_since(log, map->from, map->entries, XCO_LOCATED_MAX, &map->until);
    map->last = log->version;
}

// Publishes at which other host each MAC address is; part of the coordinator's shell.
#include "coordinator/located.h"

#include <errno.h>

static const char *const FIELDS[] = {"complete"};
static const char *const COLUMNS[] = {"ethernet", "host"};

int xco_located_open(struct xco_coordinator *c) {
    const struct xco_stats_layout layout = {
        .field_names = FIELDS,
        .fields = sizeof FIELDS / sizeof FIELDS[0],
        .column_names = COLUMNS,
        .columns = sizeof COLUMNS / sizeof COLUMNS[0],
        .rows = c->map.there.room,
    };
    bool published = c->config.places_file[0] != '\0';
    return published && xco_stats_open(&c->map.located, c->config.places_file, &layout) < 0 ? -errno
                                                                                            : 0;
}

// A MAC address as a number, 0 for any other address.
static uint64_t ethernet_of(const struct xco_place *place) {
    uint64_t number = 0;
    for (size_t i = 0; i < 6; i++) {
        number = number << 8 | place->address[i];
    }
    return place->kind == XCO_PLACE_MAC && place->vlan == XCO_ANY_VLAN ? number : 0;
}

// A row belongs to the address with its number in the log; readers skip rows at no host.
void xco_located_note(struct xco_coordinator *c, const struct xco_place *place) {
    const uint32_t number = xco_place_log_number(&c->map.there, place);
    struct xco_stats *stats = &c->map.located;
    if (stats->header == NULL || number == 0) {
        return;
    }
    xco_stats_begin(stats);
    uint64_t *row = xco_stats_row(stats, number - 1);
    row[0] = ethernet_of(place);
    row[1] = xco_place_log_find(&c->map.there, place);
    if (stats->header->rows_used < number) {
        stats->header->rows_used = number;
    }
    xco_stats_end(stats, (uint64_t)xco_now_ns());
}

void xco_located_complete(struct xco_coordinator *c) {
    struct xco_stats *stats = &c->map.located;
    if (stats->header != NULL && stats->values[0] == 0) {
        xco_stats_begin(stats);
        stats->values[0] = 1;
        xco_stats_end(stats, (uint64_t)xco_now_ns());
    }
}

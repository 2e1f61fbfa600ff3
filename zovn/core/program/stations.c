/* Copies addresses between steps, a bounded number at once, and names their ports. */
#include "program/stations.h"

#include <inttypes.h>
#include <string.h>

enum { PAGE = 1024 }; /* an answer has to fit into the buffer of its socket */

struct page {
    const struct zovn_switch *vswitch;
    uint32_t at, count;
    struct zovn_known known[PAGE];
};

static void copy(void *context) {
    struct page *page = context;
    page->count +=
        zovn_switch_known(page->vswitch, &page->at, page->known + page->count, PAGE - page->count);
}

/* Which port has each place of the switch. */
static void take_places(const struct zovn_ports *ports,
                        const struct zovn_named *at[ZOVN_MOST_PORTS]) {
    memset(at, 0, ZOVN_MOST_PORTS * sizeof *at);
    for (uint32_t i = 0; i < ports->count; i++) {
        int32_t place = zovn_line_place(ports->named[i].kind->line(ports->named[i].opened));
        if (place >= 0)
            at[place] = &ports->named[i];
    }
}

static void write_one(const struct zovn_known *known, const struct zovn_named *named, FILE *to) {
    const uint8_t *address = known->address;
    fprintf(to,
            "station ethernet=%02x:%02x:%02x:%02x:%02x:%02x vlan=%d port=%s kind=%s static=%d\n",
            address[0], address[1], address[2], address[3], address[4], address[5], known->vlan,
            named->kind->line(named->opened)->options.name, named->kind->name, known->fixed);
}

/* Sessions attach and detach meanwhile: a place that has changed is of no port for sure. */
void zovn_stations_write(const struct zovn_ports *ports, uint32_t from, FILE *to) {
    const struct zovn_named *before[ZOVN_MOST_PORTS], *after[ZOVN_MOST_PORTS];
    struct page page = {.vswitch = ports->forwarder->vswitch, .at = from};
    take_places(ports, before);
    do
        zovn_forwarder_call(ports->forwarder, copy, &page);
    while (page.at && page.count < PAGE);
    take_places(ports, after);
    fprintf(to, "stations next=%" PRIu32 "\n", page.at);
    for (uint32_t i = 0; i < page.count; i++) {
        const struct zovn_named *named = after[page.known[i].port];
        if (named && named == before[page.known[i].port])
            write_one(&page.known[i], named, to);
    }
}

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

static void take_names(const struct zovn_ports *ports, const char *names[ZOVN_MOST_PORTS]) {
    memset(names, 0, ZOVN_MOST_PORTS * sizeof *names);
    for (uint32_t i = 0; i < ports->count; i++) {
        struct zovn_line *line = ports->named[i].kind->line(ports->named[i].opened);
        int32_t place = zovn_line_place(line);
        if (place >= 0)
            names[place] = line->options.name;
    }
}

static void write_one(const struct zovn_known *known, const char *name, FILE *to) {
    const uint8_t *address = known->address;
    fprintf(to, "station ethernet=%02x:%02x:%02x:%02x:%02x:%02x vlan=%d port=%s static=%d\n",
            address[0], address[1], address[2], address[3], address[4], address[5], known->vlan,
            name, known->fixed);
}

/* Sessions attach and detach meanwhile: a place whose name has changed is of no port for sure. */
void zovn_stations_write(const struct zovn_ports *ports, uint32_t from, FILE *to) {
    const char *before[ZOVN_MOST_PORTS], *after[ZOVN_MOST_PORTS];
    struct page page = {.vswitch = ports->forwarder->vswitch, .at = from};
    take_names(ports, before);
    do
        zovn_forwarder_call(ports->forwarder, copy, &page);
    while (page.at && page.count < PAGE);
    take_names(ports, after);
    fprintf(to, "stations next=%" PRIu32 "\n", page.at);
    for (uint32_t i = 0; i < page.count; i++) {
        const char *name = after[page.known[i].port];
        if (name && name == before[page.known[i].port])
            write_one(&page.known[i], name, to);
    }
}

// Keeps for each link the hosts with promised rates outside turns.
#include "controller/engine/extras.h"

#include <stdlib.h>

#include "scheduler/schedule.h"

bool xco_extras_init(struct xco_extras *extras, uint32_t links) {
    *extras = (struct xco_extras){.links = malloc(((size_t)links + 1) * sizeof *extras->links)};
    if (extras->links == NULL) {
        return false;
    }
    xco_extras_clear(extras, links);
    return true;
}

void xco_extras_free(struct xco_extras *extras) {
    free(extras->links);
    free(extras->hosts);
    *extras = (struct xco_extras){0};
}

void xco_extras_clear(struct xco_extras *extras, uint32_t links) {
    extras->count = 0;
    for (uint32_t link = 0; link < links; link++) {
        extras->links[link] = (struct xco_promised){.first = XCO_NONE};
    }
}

static bool grow(struct xco_extras *extras) {
    const size_t room = extras->room == 0 ? 256 : 2 * extras->room;
    struct xco_extra *hosts = realloc(extras->hosts, room * sizeof *hosts);
    if (hosts == NULL) {
        return false;
    }
    extras->hosts = hosts;
    extras->room = room;
    return true;
}

bool xco_extras_note(struct xco_extras *extras, uint32_t link, uint32_t host, uint64_t rate_bps) {
    struct xco_promised *promised = &extras->links[link];
    promised->rate_bps += rate_bps;
    if (promised->first != XCO_NONE && extras->hosts[promised->first].host == host) {
        return true;
    }
    if (extras->count == extras->room && !grow(extras)) {
        return false;
    }
    extras->hosts[extras->count] = (struct xco_extra){host, promised->first};
    promised->first = (uint32_t)extras->count++;
    return true;
}

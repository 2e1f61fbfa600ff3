// Rates outside turns (`hybrid`): which hosts have them on a link, and what it gives back to turns.
#ifndef XCO_CONTROLLER_ENGINE_EXTRAS_H
#define XCO_CONTROLLER_ENGINE_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A host with a promised rate on a directed link.
struct xco_extra {
    uint32_t host;
    uint32_t next; // XCO_NONE: the last
};

// For a link: an upper bound of its promised rates outside turns, and the hosts that have them.
struct xco_promised {
    uint64_t rate_bps;
    uint32_t first; // XCO_NONE: none
};

struct xco_extras {
    struct xco_promised *links; // one per directed link
    struct xco_extra *hosts;
    size_t count;
    size_t room;
};

bool xco_extras_init(struct xco_extras *extras, uint32_t links); // false: out of memory
void xco_extras_free(struct xco_extras *extras);
void xco_extras_clear(struct xco_extras *extras, uint32_t links);

// Notes a promise on one link; call in a row for one host. False: out of memory.
bool xco_extras_note(struct xco_extras *extras, uint32_t link, uint32_t host, uint64_t rate_bps);

#endif

/* Frames to a destination, by turns, while it has room. */
#ifndef ZOVN_SWITCH_SERVE_H
#define ZOVN_SWITCH_SERVE_H

#include "switch/state.h"

/* Serve a destination, `most` frames or segments at most. Return how many were delivered or dropped. */
uint32_t zovn_serve(struct zovn_switch *vswitch, uint32_t destination, uint32_t most);

/* Note whether a destination takes its frames; treat it as lossy while it is stalled. */
void zovn_watch(struct zovn_switch *vswitch, uint32_t destination);

#endif

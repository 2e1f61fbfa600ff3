/* What changes in a frame on its way: its VLAN tag, and a mark of congestion. */
#ifndef ZOVN_SWITCH_EDIT_H
#define ZOVN_SWITCH_EDIT_H

#include "switch/facts.h"

/* A copy of a frame's first bytes, which no one else can change. */
struct zovn_head {
    uint8_t bytes[4 + 64]; /* with room for a tag before them */
};

/* Copy a frame's first bytes into `room`, which becomes part of it; the header is the one that was
 * classified. Mark it if `mark`, tag it as its destination needs it; return whether it is marked. */
bool zovn_edit(struct zovn_frame *frame, struct zovn_head *room, const struct zovn_facts *facts,
               bool mark, const struct zovn_port_settings *to);

#endif

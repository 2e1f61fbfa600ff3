/* Frames for several destinations: copied into parking once, and queued for each. */
#ifndef ZOVN_SWITCH_FLOOD_H
#define ZOVN_SWITCH_FLOOD_H

#include "switch/state.h"

/* Return whether frames of a VLAN from a source may go to a port. */
bool zovn_is_target(const struct zovn_switch *vswitch, uint32_t source, uint32_t port,
                    uint16_t vlan);

/* Return all such ports. */
struct zovn_set zovn_targets(const struct zovn_switch *vswitch, uint32_t source, uint16_t vlan);

/* Return whether a frame of this class can be flooded now. A lossy one can always: it is dropped
 * if there is no parking. For a lossless one, what was parked for `stall_ns` makes room. */
bool zovn_may_flood(struct zovn_switch *vswitch, uint32_t source, uint16_t head);

/* Where that waited until no thread is in a step: make room, if parking is still full. */
void zovn_make_room(struct zovn_switch *vswitch, uint32_t source);

/* Flood a frame that was accepted. Return why its last copy was dropped in its sender's ring, or
 * ZOVN_REASONS if none was, and the sender has the frame back. */
enum zovn_reason zovn_flood(struct zovn_switch *vswitch, uint32_t source, uint16_t head,
                            const struct zovn_frame *frame, const struct zovn_set *targets);

/* Flood a frame of a source that lies in none of its rings. Return false if there is no parking. */
bool zovn_flood_made(struct zovn_switch *vswitch, uint32_t source, const struct zovn_facts *facts,
                     const struct zovn_frame *frame, const struct zovn_set *targets);

#endif

/* Queues of references, and deficit round robin in bytes among them. */
#ifndef ZOVN_SWITCH_QUEUES_H
#define ZOVN_SWITCH_QUEUES_H

#include "switch/offload.h"
#include "switch/state.h"

/* One queue, and its first frame. */
struct zovn_place {
    uint32_t destination, source, class;
};

const struct zovn_facts *zovn_reference_facts(const struct zovn_member *source, uint32_t reference);

void zovn_queue_push(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t reference);

/* Append `count` heads, of `bytes` in all, which are linked to each other from the first to the last one. */
void zovn_queue_push_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t first,
                         uint32_t last, uint32_t count, uint64_t bytes);

/* Remove the first frame of a queue that has one; return its reference. */
uint32_t zovn_queue_pop(struct zovn_switch *vswitch, const struct zovn_place *at);

/* Remove a copy of a parked frame, wherever in its queue it is; `reference` is that of the copy. */
void zovn_queue_unlink(struct zovn_switch *vswitch, const struct zovn_place *at,
                       uint32_t reference);

/* Find whose turn it is at a destination, among `classes`, which have frames. Without
 * `zovn_queue_charge` it stays so: what is left of a turn survives a full ring. */
void zovn_queue_turn(struct zovn_switch *vswitch, uint32_t destination, uint32_t classes,
                     struct zovn_place *at);

/* Charge the turn with its first frame, or with the next segment of it. */
void zovn_queue_charge(struct zovn_switch *vswitch, const struct zovn_place *at);

/* Return how many bytes the turn's source may send before the turn ends. */
uint64_t zovn_queue_credit(const struct zovn_switch *vswitch, const struct zovn_place *at);

/* Remove the first `count` frames of a queue, of `bytes` in all, up to `last`; charge the turn with them. None of
 * them is parked, or has a kind of segmentation. */
void zovn_queue_pop_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t last,
                        uint32_t count, uint64_t bytes);

/* After a part of the first frame, which has a kind of segmentation, went out: return whether more of
 * it follow. */
bool zovn_queue_advance(struct zovn_switch *vswitch, const struct zovn_place *at);

/* Let the first frame go as segments, since it is too long as it is; return false if that does not
 * make it shorter, or it does so already. */
bool zovn_queue_cut(struct zovn_switch *vswitch, const struct zovn_place *at);

/* Make the first frame what goes out of it next; return what is to be known of it then. */
const struct zovn_facts *zovn_queue_finish(struct zovn_switch *vswitch, const struct zovn_place *at,
                                           struct zovn_finished *finished,
                                           struct zovn_frame *frame);

#endif

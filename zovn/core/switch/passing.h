/* References on their way: into a queue, or to the thread that has the destination; and back.
 *
 * A source's references to the destinations of one part are passed in order, by one channel, and their
 * ends come back by another. With one part there is nothing to pass. */
#ifndef ZOVN_SWITCH_PASSING_H
#define ZOVN_SWITCH_PASSING_H

#include "switch/queues.h"

/* Let a reference wait for a destination, or pass it. Return why it may not wait, or ZOVN_REASONS; where it
 * is passed, its end says that. */
enum zovn_reason zovn_send(struct zovn_switch *vswitch, const struct zovn_place *at,
                           uint32_t reference);

/* The same of `count` heads, of `bytes` in all, which are linked to each other from the first to the last one. If
 * they are queued here, any number of frames may wait there. */
void zovn_send_run(struct zovn_switch *vswitch, const struct zovn_place *at, uint32_t first,
                   uint32_t last, uint32_t count, uint64_t bytes);

/* Take a batch of what a source of another part has passed to a part; return how many. */
uint32_t zovn_take_passed(struct zovn_switch *vswitch, uint32_t source, uint32_t part);

/* Take a batch of what came back of a source's references from each part; return how many. */
uint32_t zovn_take_ends(struct zovn_switch *vswitch, uint32_t source);

/* Show other parts what a source has passed. */
void zovn_show_passed(struct zovn_switch *vswitch, uint32_t source);

/* Show other parts the ends of their references. Their senders then have the frames back: the
 * destinations must have been shown theirs before. */
void zovn_show_ends(struct zovn_switch *vswitch, uint32_t part);

/* While no thread is in a step: take all that is on its way, until nothing is. */
void zovn_take_all(struct zovn_switch *vswitch);

/* Return whether no thread is in a step; else note that a member waits for that. */
bool zovn_alone(struct zovn_switch *vswitch, uint32_t port);

#endif

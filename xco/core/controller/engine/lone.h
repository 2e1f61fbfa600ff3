// Lone turns: extended while no other host wants their links.
#ifndef XCO_CONTROLLER_ENGINE_LONE_H
#define XCO_CONTROLLER_ENGINE_LONE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Notes what a host is backlogged for, in place of what it was before; or that it no longer is for one.
void xco_lone_want(struct xco_control *core, uint32_t host, const uint32_t *group, size_t count);
void xco_lone_want_less(struct xco_control *core, uint32_t host, uint32_t destination);

// Whether the turn of a host may be extended; extends it far beyond its end.
bool xco_lone_is(const struct xco_control *core, uint32_t host);
void xco_lone_extend(struct xco_control *core, uint64_t now_ns, uint32_t host);

// The turn of a host is no longer lone.
void xco_lone_end(struct xco_control *core, uint32_t host);

// Lone turns become slices: those that give way to what a host wants; those that are lone no longer,
// since a host fell back or came back.
void xco_lone_yield(struct xco_control *core, uint64_t now_ns, uint32_t host);
void xco_lone_review(struct xco_control *core, uint64_t now_ns);

// A report came: whether it acknowledged what was taken back, so that turns may begin earlier.
bool xco_lone_heard(struct xco_control *core, uint64_t now_ns, uint32_t host);

#endif

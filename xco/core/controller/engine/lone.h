// Lone turns: extended while no other host wants their links.
#ifndef XCO_CONTROLLER_ENGINE_LONE_H
#define XCO_CONTROLLER_ENGINE_LONE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

// Records a host's new backlog in place of the previous one, or that one backlog has ended.
void xco_lone_want(struct xco_control *core, uint32_t host, const uint32_t *group, size_t count);
void xco_lone_want_less(struct xco_control *core, uint32_t host, uint32_t destination);

// Whether a host's turn may be extended; extends it far beyond its end.
bool xco_lone_is(const struct xco_control *core, uint32_t host);
void xco_lone_extend(struct xco_control *core, uint64_t now_ns, uint32_t host);

// Marks a host's turn as no longer lone.
void xco_lone_end(struct xco_control *core, uint32_t host);

// Turns lone turns into slices: those that block what a host wants, and those no longer lone since
// a host fell back or recovered.
void xco_lone_yield(struct xco_control *core, uint64_t now_ns, uint32_t host);
void xco_lone_review(struct xco_control *core, uint64_t now_ns);

// Handles a report: if it acknowledges time taken back, turns may begin earlier.
bool xco_lone_heard(struct xco_control *core, uint64_t now_ns, uint32_t host);

#endif

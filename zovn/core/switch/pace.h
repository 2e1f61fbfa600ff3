/* The rate of a port's output, by virtual scheduling (GCRA: ITU-T I.371, annex A).
 *
 * A frame may go as long as the line, sending at its rate, would begin with it within the tolerance.
 * So in any time t at most rate x (t + tolerance) and one frame go out, and a switch that looks at
 * least once in each tolerance misses nothing of the rate. */
#ifndef ZOVN_SWITCH_PACE_H
#define ZOVN_SWITCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { ZOVN_TOLERANCE_NS = 100000 };

struct zovn_pace {
    uint64_t rate_bps; /* of the bits of frames; 0: no limit */
    uint64_t free_ns;  /* when the line has sent all that went out */
};

/* Return when the next frame may go: now, or later. */
uint64_t zovn_pace_due(const struct zovn_pace *pace, uint64_t now_ns);

/* Count a frame of so many bytes that goes out now. */
void zovn_pace_sent(struct zovn_pace *pace, uint64_t now_ns, uint32_t bytes);

#endif

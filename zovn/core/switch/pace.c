/* Virtual scheduling of a port's output. */
#include "switch/pace.h"

#define SECOND_NS UINT64_C(1000000000)

uint64_t zovn_pace_due(const struct zovn_pace *pace, uint64_t now_ns) {
    bool early = pace->rate_bps && pace->free_ns > now_ns + ZOVN_TOLERANCE_NS;
    return early ? pace->free_ns - ZOVN_TOLERANCE_NS : now_ns;
}

/* A line that was free begins now: time in which nothing waited is not made up for. */
void zovn_pace_sent(struct zovn_pace *pace, uint64_t now_ns, uint32_t bytes) {
    if (!pace->rate_bps)
        return;
    uint64_t begin_ns = pace->free_ns > now_ns ? pace->free_ns : now_ns;
    pace->free_ns = begin_ns + bytes * 8 * SECOND_NS / pace->rate_bps;
}

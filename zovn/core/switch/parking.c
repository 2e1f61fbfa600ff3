/* A fixed number of frames for each port. Memory that was never used costs no pages. */
#include "switch/parking.h"

#include <stdlib.h>
#include <string.h>

bool zovn_parking_init(struct zovn_member *member, uint32_t frames) {
    member->parked = calloc(frames, sizeof *member->parked);
    for (uint32_t i = 0; member->parked && i < frames; i++)
        if (!(member->parked[i].bytes = malloc(ZOVN_MOST_BYTES)))
            return false;
    return member->parked;
}

void zovn_parking_free(struct zovn_member *member, uint32_t frames) {
    for (uint32_t i = 0; member->parked && i < frames; i++)
        free(member->parked[i].bytes);
    free(member->parked);
}

uint32_t zovn_parking_take(struct zovn_member *member, uint32_t frames,
                           const struct zovn_facts *facts, const struct zovn_frame *frame) {
    if (member->parked_count == frames)
        return ZOVN_NONE;
    uint32_t index = 0;
    while (zovn_set_any(&member->parked[index].waits))
        index++;
    struct zovn_parked *parked = &member->parked[index];
    parked->facts = *facts;
    zovn_frame_copy(frame, &(struct zovn_segment){parked->bytes, ZOVN_MOST_BYTES});
    member->parked_count++;
    return ZOVN_PARKED_BIT | index * ZOVN_MOST_PORTS;
}

uint32_t zovn_parking_oldest(const struct zovn_member *member, uint32_t frames) {
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < frames; i++)
        if (member->parked[i].since_ns < member->parked[oldest].since_ns)
            oldest = i;
    return ZOVN_PARKED_BIT | oldest * ZOVN_MOST_PORTS;
}

void zovn_parking_leave(struct zovn_member *member, uint32_t reference) {
    struct zovn_parked *parked = zovn_parking_of(member, reference);
    zovn_set_remove(&parked->waits, zovn_parking_destination(reference));
    if (!zovn_set_any(&parked->waits))
        member->parked_count--;
}

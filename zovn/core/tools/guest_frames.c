/* Frames that say from where to where they go, and their number among those. */
#include <string.h>

#include "tools/guest.h"

enum { MAGIC = 0x7a6f766e, HEADER = 14 };

struct content {
    uint32_t magic;
    uint16_t from, to;
    uint64_t number;
};

static void address(uint8_t *at, uint16_t station) {
    const uint8_t bytes[] = {2, 0, 0, 0, 0, (uint8_t)station};
    memcpy(at, bytes, sizeof bytes);
}

void guest_write(uint16_t from, uint16_t to, uint64_t number, uint8_t *frame, uint16_t length) {
    const struct content content = {MAGIC, from, to, number};
    memset(frame, 0, length);
    address(frame, to);
    address(frame + 6, from);
    frame[12] = 0x88; /* a type for experiments */
    frame[13] = 0xb5;
    memcpy(frame + HEADER, &content, sizeof content);
}

bool guest_count(struct port *port, uint16_t queue, const uint8_t *frame, uint32_t length) {
    struct content content;
    if (length < HEADER + sizeof content)
        return false;
    memcpy(&content, frame + HEADER, sizeof content);
    uint32_t station = (uint32_t)content.to - port->station; /* huge if it is below */
    if (content.magic != MAGIC || station >= port->queues || content.from >= GUEST_STATIONS)
        return false;
    struct tally *tally = &port->from[content.from];
    tally->moved += tally->received && queue != tally->queue;
    tally->queue = queue;
    tally->received++;
    tally->repeated += tally->next && content.number == tally->next - 1;
    tally->overtaken += content.number + 1 < tally->next;
    if (content.number > tally->next)
        tally->gaps += content.number - tally->next;
    if (content.number >= tally->next)
        tally->next = content.number + 1;
    return true;
}

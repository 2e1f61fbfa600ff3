/* Announces a station whose guest cannot: a RARP request to all (RFC 903), as hypervisors send it. */
#include <string.h>

#include "switch/classify.h"
#include "switch/flood.h"
#include "switch/switch.h"

enum { FRAME_BYTES = 60, FROM_AT = 6, TYPE_AT = 12, SENDER_AT = 22, TARGET_AT = 32 };

/* The protocol's addresses are not known: they are 0. */
static void write_request(uint8_t frame[FRAME_BYTES], const uint8_t *address) {
    static const uint8_t HEAD[] = {0x80, 0x35, 0, 1, 0x08, 0, 6, 4, 0, 3};
    memset(frame, 0, FRAME_BYTES);
    memset(frame, 0xff, FROM_AT);
    memcpy(frame + FROM_AT, address, 6);
    memcpy(frame + TYPE_AT, HEAD, sizeof HEAD);
    memcpy(frame + SENDER_AT, address, 6);
    memcpy(frame + TARGET_AT, address, 6);
}

static bool find(const struct zovn_switch *vswitch, const struct zovn_member *member,
                 const struct zovn_frame *frame, struct zovn_facts *facts) {
    return zovn_facts_find(facts, frame, 0, &member->settings, &vswitch->settings) == ZOVN_REASONS;
}

bool zovn_switch_announce(struct zovn_switch *vswitch, uint32_t port, const uint8_t *address) {
    struct zovn_member *member = port < ZOVN_MOST_PORTS ? vswitch->members[port] : NULL;
    uint8_t request[FRAME_BYTES];
    struct zovn_frame frame;
    struct zovn_facts facts;
    write_request(request, address);
    zovn_frame_begin(&frame);
    zovn_frame_append(&frame, request, sizeof request);
    if (!member || !member->running || !find(vswitch, member, &frame, &facts))
        return false;
    zovn_learn(vswitch, port, &facts);
    struct zovn_set targets = zovn_targets(vswitch, port, facts.vlan);
    return !zovn_set_any(&targets) || zovn_flood_made(vswitch, port, &facts, &frame, &targets);
}

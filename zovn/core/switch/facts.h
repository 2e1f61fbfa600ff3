/* What the switch found in a frame when it classified it. It uses this, and does not read again. */
#ifndef ZOVN_SWITCH_FACTS_H
#define ZOVN_SWITCH_FACTS_H

#include "ports/port.h"
#include "switch/counters.h"
#include "switch/settings.h"

struct zovn_facts {
    uint32_t length;
    struct zovn_offload offload;
    uint16_t vlan;
    uint8_t class;
    uint8_t tagged;
    uint16_t payload_at; /* of a frame that can be segmented; else 0 */
    uint8_t header[ZOVN_HEADER]; /* the frame's first bytes: these are delivered */
};

/* Find them. Return why the frame may not come in by this port, or ZOVN_REASONS. */
enum zovn_reason zovn_facts_find(struct zovn_facts *facts, const struct zovn_frame *frame,
                                 uint32_t sends, const struct zovn_port_settings *port,
                                 const struct zovn_settings *settings);

/* Return whether a port carries a VLAN. */
bool zovn_carries(const struct zovn_port_settings *port, uint16_t vlan);

/* Return the offloads that a frame needs, as bits of ports/port.h; -1 for an unknown one. */
int32_t zovn_offloads_of(const struct zovn_offload *offload);

/* Return where the frame's network header begins. */
static inline uint32_t zovn_network_at(const struct zovn_facts *facts) {
    return facts->tagged ? 18 : 14;
}

#endif

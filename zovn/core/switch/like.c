/* A place for each of some headers, by the last byte of their destination. */
#include "switch/like.h"

#include <string.h>

#include "switch/flood.h"

/* Ethernet's header without a tag, in two words that overlap. */
struct words {
    uint64_t first, last;
};

static struct words words_of(const uint8_t *header) {
    struct words words;
    memcpy(&words.first, header, sizeof words.first);
    memcpy(&words.last, header + 6, sizeof words.last);
    return words;
}

static uint32_t place_of(const struct words *words) {
    return (uint32_t)(words->first >> 40) % ZOVN_LIKES;
}

static bool holds(const struct zovn_switch *vswitch, const struct zovn_member *source,
                  const struct zovn_like *like) {
    const uint64_t *changes = &vswitch->addresses.changes;
    return like->known && like->clock_ns == source->clock_ns &&
           like->changes == __atomic_load_n(changes, __ATOMIC_RELAXED);
}

/* Look the destination up again, if the sender's address is known to this step. */
static bool renew(struct zovn_switch *vswitch, uint32_t source, struct zovn_like *like) {
    const struct zovn_member *member = vswitch->members[source];
    const uint16_t vlan = like->facts.vlan;
    const uint64_t from = zovn_address_key(vlan, like->facts.header + 6),
                   to = zovn_address_key(vlan, like->facts.header);
    struct zovn_recall found;
    if (!like->known || !zovn_recalls(&vswitch->addresses, &member->learned, from) ||
        !zovn_addresses_find(&vswitch->addresses, to, member->clock_ns, &found) ||
        found.port != like->destination || found.changes != member->learned.changes ||
        !zovn_is_target(vswitch, source, found.port, vlan))
        return false;
    like->clock_ns = member->clock_ns;
    like->changes = found.changes;
    return true;
}

const struct zovn_like *zovn_like_find(struct zovn_switch *vswitch, uint32_t source,
                                       const uint8_t *bytes) {
    struct zovn_member *member = vswitch->members[source];
    const struct words found = words_of(bytes);
    struct zovn_like *like = &member->likes[place_of(&found)];
    const struct words known = words_of(like->facts.header);
    bool same = found.first == known.first && found.last == known.last;
    return same && (holds(vswitch, member, like) || renew(vswitch, source, like)) ? like : NULL;
}

void zovn_like_facts(struct zovn_facts *facts, const struct zovn_like *like, const uint8_t *bytes,
                     uint32_t length) {
    *facts = like->facts;
    facts->length = length;
    memcpy(facts->header + ZOVN_UNTAGGED, bytes + ZOVN_UNTAGGED, ZOVN_HEADER - ZOVN_UNTAGGED);
}

/* What is found behind the header, as a DSCP, is not that of all others. Of frames with something left to do none
 * is plain. */
void zovn_like_note(struct zovn_member *source, const struct zovn_facts *facts) {
    if (facts->tagged || facts->offload.flags || source->settings.trust == ZOVN_TRUST_DSCP ||
        source->learned.changes != source->found.changes)
        return;
    const struct words words = words_of(facts->header);
    struct zovn_like *like = &source->likes[place_of(&words)];
    *like = (struct zovn_like){
        .facts = *facts,
        .clock_ns = source->clock_ns,
        .changes = source->found.changes,
        .destination = (uint8_t)source->found.port,
        .known = true,
    };
}

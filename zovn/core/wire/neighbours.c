/* Hosts of the map, and when each is to be asked for its Ethernet address. */
#include "wire/neighbours.h"

#include <string.h>

#define AGAIN_NS UINT64_C(1000000000)
#define REFRESH_NS UINT64_C(30000000000)

static const struct zovn_neighbour *known_as(const struct zovn_neighbours *neighbours,
                                             const uint8_t *address) {
    for (uint32_t i = 0; i < neighbours->count; i++)
        if (memcmp(neighbours->of[i].endpoint.address, address, 4) == 0)
            return &neighbours->of[i];
    return NULL;
}

void zovn_neighbours_set(struct zovn_neighbours *neighbours,
                         const struct zovn_locations *locations) {
    const struct zovn_neighbours before = *neighbours;
    *neighbours = (struct zovn_neighbours){.count = locations->host_count};
    for (uint32_t i = 0; i < neighbours->count; i++) {
        const struct zovn_neighbour *old = known_as(&before, locations->hosts[i]);
        if (old)
            neighbours->of[i] = *old;
        memcpy(neighbours->of[i].endpoint.address, locations->hosts[i], 4);
    }
}

/* Frames come in runs of one host's. */
bool zovn_neighbours_has(struct zovn_neighbours *neighbours, const uint8_t address[4]) {
    const struct zovn_neighbour *latest = &neighbours->of[neighbours->latest];
    if (neighbours->latest < neighbours->count && !memcmp(latest->endpoint.address, address, 4))
        return true;
    const struct zovn_neighbour *found = known_as(neighbours, address);
    if (found)
        neighbours->latest = (uint32_t)(found - neighbours->of);
    return found;
}

void zovn_neighbours_learn(struct zovn_neighbours *neighbours, const struct zovn_endpoint *sender,
                           uint64_t now_ns) {
    struct zovn_neighbour *found = (struct zovn_neighbour *)known_as(neighbours, sender->address);
    if (!found)
        return;
    found->endpoint = *sender;
    found->known = true;
    found->ask_ns = now_ns + REFRESH_NS;
}

int32_t zovn_neighbours_due(const struct zovn_neighbours *neighbours, const uint8_t self[4],
                            uint64_t now_ns) {
    for (uint32_t i = 0; i < neighbours->count; i++)
        if (neighbours->of[i].ask_ns <= now_ns &&
            memcmp(neighbours->of[i].endpoint.address, self, 4) != 0)
            return (int32_t)i;
    return -1;
}

void zovn_neighbours_asked(struct zovn_neighbours *neighbours, uint32_t number, uint64_t now_ns) {
    neighbours->of[number].ask_ns = now_ns + AGAIN_NS;
}

/* Translates a peer's addresses into ours. */
#include "rings/memory.h"

#include <stddef.h>

uint8_t *zovn_memory_at(const struct zovn_memory *memory, uint64_t address, uint64_t bytes) {
    for (uint32_t i = 0; i < memory->count; i++) {
        const struct zovn_region *region = &memory->regions[i];
        uint64_t offset = address - region->address; /* huge for an address below the region */
        if (offset < region->bytes && bytes <= region->bytes - offset)
            return bytes ? region->base + offset : NULL;
    }
    return NULL;
}

/* Translates a peer's addresses into ours, and back for the log. */
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

enum { PAGE_BYTES = 4096 }; /* of the log, whatever pages the peer has */

static void mark(const struct zovn_memory *memory, uint64_t page) {
    if (page / 8 < memory->log_bytes)
        __atomic_fetch_or(&memory->log[page / 8], (uint8_t)(1u << page % 8), __ATOMIC_RELEASE);
}

void zovn_memory_log(const struct zovn_memory *memory, const void *at, uint64_t bytes) {
    for (uint32_t i = 0; bytes && i < memory->count; i++) {
        const struct zovn_region *region = &memory->regions[i];
        uint64_t offset = (uintptr_t)at - (uintptr_t)region->base;
        if (offset >= region->bytes)
            continue;
        uint64_t first = region->address + offset, last = first + bytes - 1;
        for (uint64_t page = first / PAGE_BYTES; page <= last / PAGE_BYTES; page++)
            mark(memory, page);
        return;
    }
}

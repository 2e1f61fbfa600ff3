/* Reads rings, memory and features from librte_vhost. */
#include "vhost/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <rte_vhost.h>

#include "rings/inflight.h"
#include "vhost/call.h"
#include "vhost/features.h"
#include "vhost/guard.h"

static bool read_memory(int device, struct zovn_memory *memory) {
    struct rte_vhost_memory *table = NULL;
    if (rte_vhost_get_mem_table(device, &table) < 0 || !table)
        return false;
    bool fits = table->nregions <= ZOVN_MOST_REGIONS;
    memory->count = fits ? table->nregions : 0;
    for (uint32_t i = 0; i < memory->count; i++)
        memory->regions[i] = (struct zovn_region){
            .address = table->regions[i].guest_phys_addr,
            .bytes = table->regions[i].size,
            .base = (uint8_t *)(uintptr_t)table->regions[i].host_user_addr,
        };
    free(table);
    return fits;
}

/* librte_vhost checks a ring where its address is set; its size may have changed since. */
static bool lies_within(const struct zovn_memory *memory, const void *part, uint64_t bytes) {
    for (uint32_t i = 0; part && i < memory->count; i++) {
        uint64_t offset = (uintptr_t)part - (uintptr_t)memory->regions[i].base;
        if (offset < memory->regions[i].bytes && bytes <= memory->regions[i].bytes - offset)
            return true;
    }
    return false;
}

/* An index of the other side's last event follows each list. */
static bool in_memory(const struct zovn_split_ring *ring) {
    const uint64_t size = ring->size, event = sizeof(uint16_t);
    const struct zovn_memory *memory = ring->memory;
    return lies_within(memory, ring->descriptors, size * sizeof *ring->descriptors) &&
           lies_within(memory, ring->avail,
                       sizeof *ring->avail + size * sizeof(uint16_t) + event) &&
           lies_within(memory, ring->used,
                       sizeof *ring->used + size * sizeof(struct zovn_used_element) + event);
}

static bool read_ring(int device, uint16_t number, uint64_t features,
                      const struct zovn_memory *memory, struct zovn_split_ring *ring) {
    struct rte_vhost_vring found;
    uint16_t avail, used;
    if (rte_vhost_get_vhost_vring(device, number, &found) < 0 ||
        rte_vhost_get_vring_base(device, number, &avail, &used) < 0)
        return false;
    *ring = (struct zovn_split_ring){
        .descriptors = (struct zovn_descriptor *)(void *)found.desc,
        .avail = (struct zovn_avail *)(void *)found.avail,
        .used = (struct zovn_used *)(void *)found.used,
        .memory = memory,
        .size = found.size,
        .event_index = zovn_vhost_has(features, VIRTIO_RING_F_EVENT_IDX),
        .indirect = zovn_vhost_has(features, VIRTIO_RING_F_INDIRECT_DESC),
        .next_avail = avail,
        .next_used = used,
        .published = used,
    };
    return zovn_split_ring_valid(ring) && in_memory(ring);
}

enum { RECORD_VERSION = 1 };

/* The record of what is taken, if the front end keeps one that is large enough. librte_vhost knows its
 * address, but not whether it is still mapped, nor its size: the front end can write the one there. */
static struct zovn_inflight *inflight_of(int device, uint16_t number, uint32_t size,
                                         const struct zovn_recorded *recorded) {
    struct rte_vhost_ring_inflight found = {0};
    if (number >= recorded->rings || size > recorded->entries ||
        rte_vhost_get_vhost_ring_inflight(device, number, &found) < 0 || !found.inflight_split)
        return NULL;
    struct zovn_inflight *inflight = (struct zovn_inflight *)found.inflight_split;
    inflight->version = RECORD_VERSION;
    return inflight;
}

static bool read_features(int device, struct zovn_ring_settings *settings) {
    uint64_t features;
    if (rte_vhost_get_negotiated_features(device, &features) < 0)
        return false;
    settings->mergeable = zovn_vhost_has(features, VIRTIO_NET_F_MRG_RXBUF);
    settings->version_1 = zovn_vhost_has(features, VIRTIO_F_VERSION_1);
    settings->sends = zovn_vhost_sends(features);
    settings->takes = zovn_vhost_takes(features);
    return true;
}

/* Of files in memory alone the kernel knows seals. Pages of another one may come from a process (FUSE), for which a
 * forwarding thread would wait without limit; even `fstat` would ask it. */
static bool is_memory(int file) {
    return fcntl(file, F_GET_SEALS) >= 0;
}

static const char *guard_region(const struct rte_vhost_mem_region *region, bool *lost) {
    if (!is_memory(region->fd))
        return "its memory is neither a memfd, nor in tmpfs or huge pages";
    if (!zovn_guard_add(region->mmap_addr, region->mmap_size, lost))
        return "there is no room to guard its memory";
    return NULL;
}

static const char *guard_memory(int device, bool *lost) {
    struct rte_vhost_memory *table = NULL;
    if (rte_vhost_get_mem_table(device, &table) < 0 || !table)
        return "its memory cannot be used";
    const char *problem = NULL;
    for (uint32_t i = 0; !problem && i < table->nregions; i++)
        problem = guard_region(&table->regions[i], lost);
    free(table);
    return problem;
}

const char *zovn_vhost_device(int device, struct zovn_memory *memory,
                              struct zovn_ring_settings *settings) {
    if (!read_features(device, settings))
        return "its features are not known";
    if (!read_memory(device, memory))
        return "its memory cannot be used";
    return guard_memory(device, &memory->lost);
}

/* All of it, whatever size the ring has now: so it takes the same room each time. */
static bool guard_inflight(const struct zovn_inflight *inflight,
                           const struct zovn_recorded *recorded, bool *lost) {
    uint64_t bytes = sizeof *inflight + recorded->entries * sizeof inflight->entries[0];
    return !inflight || zovn_guard_add(inflight, bytes, lost);
}

const char *zovn_vhost_pair(int device, uint32_t pair, const struct zovn_recorded *recorded,
                            struct zovn_memory *memory, struct zovn_ring_pair *rings) {
    const uint16_t first = (uint16_t)(pair * ZOVN_RINGS), transmit = first + ZOVN_TRANSMIT;
    uint64_t features;
    if (rte_vhost_get_negotiated_features(device, &features) < 0)
        return "its features are not known";
    if (!read_ring(device, transmit, features, memory, &rings->transmit) ||
        !read_ring(device, first + ZOVN_RECEIVE, features, memory, &rings->receive))
        return "its rings cannot be used";
    rings->transmit.inflight = inflight_of(device, transmit, rings->transmit.size, recorded);
    return guard_inflight(rings->transmit.inflight, recorded, &memory->lost)
               ? NULL
               : "there is no room to guard its record";
}

static bool find_file(const struct rte_vhost_memory *table, uint64_t address,
                      struct zovn_record_of *about) {
    for (uint32_t i = 0; i < table->nregions; i++) {
        const struct rte_vhost_mem_region *region = &table->regions[i];
        uint64_t offset = address - (uintptr_t)region->mmap_addr;
        struct stat status;
        if (offset >= region->mmap_size || fstat(region->fd, &status) < 0)
            continue;
        about->device = status.st_dev;
        about->inode = status.st_ino;
        about->offset = offset;
        return true;
    }
    return false;
}

bool zovn_vhost_about(int device, const struct zovn_split_ring *ring,
                      struct zovn_record_of *about) {
    struct rte_vhost_memory *table = NULL;
    if (rte_vhost_get_mem_table(device, &table) < 0 || !table)
        return false;
    about->size = ring->size;
    bool found = find_file(table, (uintptr_t)ring->descriptors, about);
    free(table);
    return found;
}

static int copy(int file, struct zovn_vhost_files *files) {
    bool usable = file >= 0 && zovn_call_usable(file);
    files->refused |= file >= 0 && !usable;
    int own = usable ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
    if (usable && own < 0)
        files->error = errno;
    return own;
}

struct zovn_vhost_files zovn_vhost_files(int device, uint32_t ring) {
    struct zovn_vhost_files files = {.call = -1, .kick = -1};
    struct rte_vhost_vring found;
    if (rte_vhost_get_vhost_vring(device, (uint16_t)ring, &found) < 0)
        return files;
    files.call = copy(found.callfd, &files);
    files.kick = copy(found.kickfd, &files);
    return files;
}

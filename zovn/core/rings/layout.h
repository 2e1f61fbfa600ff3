/* How a split virtqueue lies in memory: virtio 1.2, section 2.7. Little endian, as virtio is. */
#ifndef ZOVN_RINGS_LAYOUT_H
#define ZOVN_RINGS_LAYOUT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rings are read as they are");

enum {
    ZOVN_NEXT = 1, /* flags of a descriptor */
    ZOVN_WRITE = 2,
    ZOVN_INDIRECT = 4,
    ZOVN_NO_INTERRUPT = 1, /* of `zovn_avail` */
    ZOVN_NO_NOTIFY = 1,    /* of `zovn_used` */
};

struct zovn_descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags;
    uint16_t next;
};

struct zovn_avail {
    uint16_t flags;
    uint16_t index;
    uint16_t ring[]; /* after the last one: used_event */
};

struct zovn_used_element {
    uint32_t id;
    uint32_t length;
};

struct zovn_used {
    uint16_t flags;
    uint16_t index;
    struct zovn_used_element ring[]; /* after the last one: avail_event */
};

_Static_assert(sizeof(struct zovn_descriptor) == 16, "virtio 1.2, 2.7.5");
_Static_assert(sizeof(struct zovn_used_element) == 8, "virtio 1.2, 2.7.8");

/* The other side may change a field at any time: each is read and written as one, and once. */
#define ZOVN_READ(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define ZOVN_WRITE_TO(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

#endif

// The pool of packets: free ones are linked.
#include "memory.h"
#include "packets.h"

static void grow(struct packets *packets) {
    uint32_t old = packets->room;
    packets->room = old ? 2 * old : 4096;
    packets->all = memory_grow(packets->all, packets->room, sizeof *packets->all);
    for (uint32_t index = old; index < packets->room; index++)
        packets->all[index].next = index + 1 < packets->room ? index + 1 : NO_PACKET;
    packets->free = old;
}

uint32_t packets_take(struct packets *packets) {
    if (packets->used == packets->room)
        grow(packets);
    uint32_t index = packets->free;
    packets->free = packets->all[index].next;
    packets->used++;
    packets->all[index] = (struct packet){.next = NO_PACKET, .ingress = NO_LINK};
    return index;
}

void packets_free(struct packets *packets, uint32_t index) {
    packets->all[index].next = packets->free;
    packets->free = index;
    packets->used--;
}

// Requests to the kernel's traffic control: several netlink messages in one buffer.
#include "qdisc/message.h"

#include <string.h>

void xco_batch_clear(struct xco_batch *batch) {
    batch->used = batch->message = 0;
    batch->count = 0;
    batch->full = false;
}

// Returns room for so many bytes, aligned and zeroed, or NULL.
static uint8_t *room(struct xco_batch *batch, size_t length) {
    size_t aligned = NLMSG_ALIGN(length);
    if (batch->full || aligned > sizeof batch->bytes - batch->used) {
        batch->full = true;
        return NULL;
    }
    uint8_t *place = batch->bytes + batch->used;
    memset(place, 0, aligned);
    batch->used += aligned;
    return place;
}

// Sets the newest message's end to that of the buffer.
static void set_length(struct xco_batch *batch) {
    struct nlmsghdr *header = (void *)(batch->bytes + batch->message);
    header->nlmsg_len = (uint32_t)(batch->used - batch->message);
}

void xco_batch_message(struct xco_batch *batch, uint16_t type, uint16_t flags,
                       const struct tcmsg *what) {
    size_t start = batch->used;
    struct nlmsghdr *header = (void *)room(batch, NLMSG_LENGTH(sizeof *what));
    if (header == NULL) {
        return;
    }
    batch->message = start;
    header->nlmsg_type = type;
    header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    header->nlmsg_seq = ++batch->count;
    memcpy(NLMSG_DATA(header), what, sizeof *what);
    set_length(batch);
}

void xco_batch_attribute(struct xco_batch *batch, uint16_t kind, const void *value, size_t length) {
    struct rtattr *attribute = (void *)room(batch, RTA_LENGTH(length));
    if (attribute == NULL) {
        return;
    }
    attribute->rta_type = kind;
    attribute->rta_len = (uint16_t)RTA_LENGTH(length);
    if (length > 0) {
        memcpy(RTA_DATA(attribute), value, length);
    }
    set_length(batch);
}

size_t xco_batch_nest(struct xco_batch *batch, uint16_t kind) {
    size_t nest = batch->used;
    xco_batch_attribute(batch, kind, NULL, 0);
    return nest;
}

void xco_batch_end_nest(struct xco_batch *batch, size_t nest) {
    if (batch->full) {
        return;
    }
    struct rtattr *attribute = (void *)(batch->bytes + nest);
    attribute->rta_len = (uint16_t)(batch->used - nest);
}

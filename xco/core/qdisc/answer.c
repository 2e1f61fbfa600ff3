// The kernel's answers to a batch of requests.
#include "qdisc/answer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/gen_stats.h>

#define ANSWER_BYTES 8192

const struct rtattr *xco_attribute(const void *attributes, size_t length, uint16_t kind) {
    const uint8_t *place = attributes;
    while (length >= sizeof(struct rtattr)) {
        const struct rtattr *attribute = (const void *)place;
        size_t whole = RTA_ALIGN((size_t)attribute->rta_len);
        if (attribute->rta_len < sizeof *attribute || attribute->rta_len > length) {
            return NULL;
        }
        if ((attribute->rta_type & ~NLA_F_NESTED) == kind) {
            return attribute;
        }
        place += whole;
        length -= whole < length ? whole : length;
    }
    return NULL;
}

// Copies an attribute's value; a longer one is truncated, a shorter one copied whole.
static void copy(const struct rtattr *attribute, void *value, size_t length) {
    if (attribute != NULL) {
        size_t there = RTA_PAYLOAD(attribute);
        memcpy(value, RTA_DATA(attribute), there < length ? there : length);
    }
}

static void read_statistics(const struct rtattr *nest, struct xco_reading *reading) {
    struct gnet_stats_basic basic = {0};
    struct gnet_stats_queue queue = {0};
    copy(xco_attribute(RTA_DATA(nest), RTA_PAYLOAD(nest), TCA_STATS_BASIC), &basic, sizeof basic);
    copy(xco_attribute(RTA_DATA(nest), RTA_PAYLOAD(nest), TCA_STATS_QUEUE), &queue, sizeof queue);
    reading->sent_bytes = basic.bytes;
    reading->backlog_bytes = queue.backlog;
    reading->waiting = queue.qlen;
}

static void take_reading(const struct nlmsghdr *header, struct xco_answers *answers) {
    if (answers->count >= answers->room) {
        return;
    }
    struct xco_reading *reading = &answers->readings[answers->count++];
    const struct tcmsg *what = NLMSG_DATA(header);
    const struct rtattr *first =
        (const void *)((const uint8_t *)header + NLMSG_SPACE(sizeof *what));
    size_t length = header->nlmsg_len - NLMSG_SPACE(sizeof *what);
    *reading = (struct xco_reading){.handle = what->tcm_handle};
    copy(xco_attribute(first, length, TCA_KIND), reading->kind, sizeof reading->kind - 1);
    const struct rtattr *statistics = xco_attribute(first, length, TCA_STATS2);
    if (statistics != NULL) {
        read_statistics(statistics, reading);
    }
}

// Takes one message; returns its errno, 0 if none.
static int take(const struct nlmsghdr *header, struct xco_answers *answers) {
    if (header->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *refusal = NLMSG_DATA(header);
        if (refusal->error != 0 && answers->place == 0) {
            answers->place = header->nlmsg_seq;
            return refusal->error;
        }
    } else if (header->nlmsg_len >= NLMSG_SPACE(sizeof(struct tcmsg))) {
        take_reading(header, answers);
    }
    return 0;
}

int xco_answers_of(int netlink, const struct xco_batch *batch, struct xco_answers *answers) {
    if (batch->full) {
        return -ENOBUFS;
    }
    if (batch->count > 0 && send(netlink, batch->bytes, batch->used, 0) < 0) {
        return -errno;
    }
    _Alignas(8) uint8_t buffer[ANSWER_BYTES];
    int first = 0;
    for (;;) {
        ssize_t got = recv(netlink, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got < 0) {
            return errno == EAGAIN || first != 0 ? first : -errno;
        }
        size_t left = (size_t)got;
        for (const struct nlmsghdr *h = (const void *)buffer; NLMSG_OK(h, left);
             h = NLMSG_NEXT(h, left)) {
            int error = take(h, answers);
            first = first == 0 ? error : first;
        }
    }
}

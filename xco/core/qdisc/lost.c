// Frames that are lost while the root of an interface is exchanged.
#include "qdisc/lost.h"

#include <string.h>
#include <sys/socket.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "qdisc/tree.h"

#define ANSWER_BYTES 1024

// Returns how many frames the interface has dropped; 0: the kernel does not say.
static uint64_t dropped(const struct xco_gate *gate) {
    struct {
        struct nlmsghdr header;
        struct if_stats_msg what;
    } question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = RTM_GETSTATS,
                   .nlmsg_flags = NLM_F_REQUEST},
        .what = {.ifindex = (uint32_t)gate->tree.interface,
                 .filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64)},
    };
    _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
    const struct nlmsghdr *header = (const void *)answer;
    const size_t head = NLMSG_SPACE(sizeof question.what);
    if (send(gate->netlink, &question, sizeof question, 0) < 0) {
        return 0;
    }
    const ssize_t got = recv(gate->netlink, answer, sizeof answer, MSG_DONTWAIT);
    if (got < (ssize_t)head || header->nlmsg_type != RTM_NEWSTATS || header->nlmsg_len > got) {
        return 0;
    }
    struct rtnl_link_stats64 counts = {0};
    const struct rtattr *found =
        xco_attribute(answer + head, header->nlmsg_len - head, IFLA_STATS_LINK_64);
    if (found != NULL) {
        const size_t there = RTA_PAYLOAD(found);
        memcpy(&counts, RTA_DATA(found), there < sizeof counts ? there : sizeof counts);
    }
    return counts.tx_dropped;
}

struct xco_stake xco_stake_read(struct xco_gate *gate) {
    struct xco_reading root = {0};
    struct xco_batch question;
    xco_batch_clear(&question);
    xco_tree_ask_root(&question, gate->tree.interface);
    const int count = xco_gate_ask(gate, &question, &root, 1);
    return (struct xco_stake){.waiting = count == 1 ? root.waiting : 0, .dropped = dropped(gate)};
}

void xco_stake_lose(struct xco_gate *gate, const struct xco_stake *before) {
    const uint64_t now = dropped(gate);
    gate->lost += before->waiting + (now > before->dropped ? now - before->dropped : 0);
}

// Partition-aggregate with three tiers: one query after the other, at random times.
#ifndef QUERIES_H
#define QUERIES_H

#include "random.h"
#include "tcp.h"

struct query {
    int64_t arrived_ps, done_ps; // done: -1 while it runs
    uint32_t high, chassis_left; // the server that asks; chassis that have not answered
};

// Messages that a sender has written and its receiver has not read: the query of each.
struct mail {
    uint32_t query, next;
};

struct mailbox {
    uint32_t head, tail;
};

struct queries {
    struct tcp *tcp;
    struct random random;
    struct query *all;
    uint32_t arrived, done, count;
    uint16_t *workers_left; // by query and chassis
    struct mail *mails;
    uint32_t mail_room, free_mail;
    struct mailbox *boxes; // by receiving endpoint
};

#define VM_HIGH 0 // the VMs of a server: high-level aggregator, mid-level aggregator, worker
#define VM_MID 1
#define VM_WORKER 2

// Endpoints that queries need, or 0 without queries.
uint32_t queries_endpoints(const struct config *config);

void queries_start(struct queries *queries);

// Handle EVENT_QUERY.
void queries_next(struct queries *queries);

// A message for one of these endpoints is complete.
void queries_on_message(struct queries *queries, uint32_t endpoint);

#endif

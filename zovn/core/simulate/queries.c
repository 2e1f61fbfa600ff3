// Partition-aggregate with three tiers. A high-level aggregator asks one mid-level aggregator in
// each chassis, which asks every worker of its chassis.
#include "queries.h"
#include "connections.h"
#include "memory.h"
#include "sender.h"

#define NO_MAIL UINT32_MAX

// Connections: high x mid, then mid x the workers of its chassis. The upper tier has the even
// endpoint of each.
static uint32_t to_mid(const struct topology *t, uint32_t high, uint32_t mid) {
    return 2 * (high * t->hosts + mid);
}

static uint32_t to_worker(const struct topology *t, uint32_t mid, uint32_t worker) {
    return 2 * (t->hosts * t->hosts + mid * t->servers + worker);
}

uint32_t queries_endpoints(const struct config *config) {
    uint32_t hosts = (uint32_t)(config->chassis * config->servers);
    return config->queries ? 2 * hosts * (hosts + (uint32_t)config->servers) : 0;
}

static void connect(struct queries *q, uint32_t endpoint, uint32_t upper_host, uint32_t upper_vm,
                    uint32_t lower_host) {
    const struct config *c = q->tcp->config;
    connections_set_up(q->tcp, endpoint, upper_host, upper_vm, 0, (uint32_t)c->request);
    connections_set_up(q->tcp, endpoint + 1, lower_host, upper_vm + 1, 0, (uint32_t)c->reply);
}

static void connect_all(struct queries *q) {
    const struct topology *t = q->tcp->topology;
    for (uint32_t host = 0; host < t->hosts; host++) {
        uint32_t first = host / t->servers * t->servers;
        for (uint32_t mid = 0; mid < t->hosts; mid++)
            connect(q, to_mid(t, host, mid), host, VM_HIGH, mid);
        for (uint32_t worker = 0; worker < t->servers; worker++)
            connect(q, to_worker(t, host, worker), host, VM_MID, first + worker);
    }
}

static void schedule(struct queries *q) {
    double wait = random_exponential(&q->random, (double)q->tcp->config->interval_ps);
    events_add(&q->tcp->network->events, tcp_now(q->tcp) + (int64_t)wait, EVENT_QUERY, 0, 0);
}

void queries_start(struct queries *q) {
    uint32_t endpoints = queries_endpoints(q->tcp->config);
    q->count = (uint32_t)q->tcp->config->queries;
    if (q->count == 0)
        return;
    q->all = memory_new(q->count, sizeof *q->all);
    q->workers_left =
        memory_new((size_t)q->count * q->tcp->topology->chassis, sizeof *q->workers_left);
    q->boxes = memory_new(endpoints, sizeof *q->boxes);
    for (uint32_t at = 0; at < endpoints; at++)
        q->boxes[at].head = NO_MAIL;
    q->free_mail = NO_MAIL;
    connect_all(q);
    schedule(q);
}

static uint32_t new_mail(struct queries *q) {
    if (q->free_mail == NO_MAIL) {
        uint32_t old = q->mail_room;
        q->mail_room = old ? 2 * old : 1024;
        q->mails = memory_grow(q->mails, q->mail_room, sizeof *q->mails);
        for (uint32_t at = old; at < q->mail_room; at++)
            q->mails[at].next = at + 1 < q->mail_room ? at + 1 : NO_MAIL;
        q->free_mail = old;
    }
    uint32_t taken = q->free_mail;
    q->free_mail = q->mails[taken].next;
    return taken;
}

static void send_message(struct queries *q, uint32_t endpoint, uint32_t query) {
    struct mailbox *box = &q->boxes[endpoint ^ 1];
    uint32_t mail = new_mail(q);
    q->mails[mail] = (struct mail){.query = query, .next = NO_MAIL};
    if (box->head == NO_MAIL)
        box->head = mail;
    else
        q->mails[box->tail].next = mail;
    box->tail = mail;
    sender_write(q->tcp, endpoint);
}

static uint32_t read_message(struct queries *q, uint32_t endpoint) {
    struct mailbox *box = &q->boxes[endpoint];
    uint32_t mail = box->head, query = q->mails[mail].query;
    box->head = q->mails[mail].next;
    q->mails[mail].next = q->free_mail;
    q->free_mail = mail;
    return query;
}

void queries_next(struct queries *q) {
    const struct topology *t = q->tcp->topology;
    uint32_t query = q->arrived++, high = random_below(&q->random, t->hosts);
    q->all[query] = (struct query){tcp_now(q->tcp), -1, high, t->chassis};
    if (q->arrived < q->count)
        schedule(q);
    for (uint32_t chassis = 0; chassis < t->chassis; chassis++) {
        uint32_t mid = chassis * t->servers + random_below(&q->random, t->servers);
        q->workers_left[query * t->chassis + chassis] = (uint16_t)t->servers;
        send_message(q, to_mid(t, high, mid), query);
    }
}

static void ask_workers(struct queries *q, uint32_t mid, uint32_t query) {
    const struct topology *t = q->tcp->topology;
    for (uint32_t worker = 0; worker < t->servers; worker++)
        send_message(q, to_worker(t, mid, worker), query);
}

static void answer_high(struct queries *q, uint32_t mid, uint32_t query) {
    send_message(q, to_mid(q->tcp->topology, q->all[query].high, mid) + 1, query);
}

static void finish_chassis(struct queries *q, uint32_t query) {
    struct query *finished = &q->all[query];
    if (--finished->chassis_left)
        return;
    finished->done_ps = tcp_now(q->tcp);
    q->done++;
}

void queries_on_message(struct queries *q, uint32_t endpoint) {
    const struct topology *t = q->tcp->topology;
    uint32_t query = read_message(q, endpoint), host = q->tcp->endpoints[endpoint].host;
    bool of_worker = endpoint >= to_worker(t, 0, 0), lower = endpoint & 1;
    if (!of_worker && lower)
        ask_workers(q, host, query);
    else if (of_worker && lower)
        send_message(q, endpoint, query);
    else if (of_worker && --q->workers_left[query * t->chassis + host / t->servers] == 0)
        answer_high(q, host, query);
    else if (!of_worker)
        finish_chassis(q, query);
}

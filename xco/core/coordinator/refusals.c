// Refuses new connections to hosts on congested ways; part of the coordinator's shell.
#include "coordinator/refusals.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"

// The program admits again by itself when the loop does not prolong a refusal for so long.
#define LEASE_NS 200000000

int xco_refusals_open(struct xco_coordinator *c) {
    struct xco_hygenicc *h = &c->hygenicc;
    if (c->config.admission_ppm == 0) {
        return 0;
    }
    if (!c->places.stand) {
        xco_say("%s: no connection is refused, since no BPF program classifies: "
                "coordinator.admission asks for it",
                c->config.interface);
        return 0;
    }
    h->admissions = calloc(h->peers.count, sizeof *h->admissions);
    return h->admissions == NULL ? -ENOMEM : 0;
}

static void tell(unsigned host, const struct xco_admission *before, bool refused, int64_t now_ns,
                 double share) {
    if (refused) {
        xco_say("connections to host %u are refused: %.0f %% of what arrives there is marked", host,
                100.0 * share);
    } else {
        xco_say("connections to host %u are admitted again, after %.1f s", host,
                (double)(now_ns - before->began_ns) / 1e9);
    }
}

static void set(struct xco_coordinator *c, unsigned host, int64_t now_ns,
                const struct xco_admission_heard *heard) {
    struct xco_admission *admission = &c->hygenicc.admissions[host];
    const struct xco_admission before = *admission;
    const struct xco_admission_terms terms = {
        .limit = (double)c->config.admission_ppm / 1e6,
        .silence_ns = c->core.config.silence_ns,
    };
    const bool refused = xco_admission_follow(admission, &terms, now_ns, heard);
    if (refused || before.began_ns != 0) {
        xco_classifier_refuse(&c->places.classifier, (uint16_t)host,
                              refused ? now_ns + LEASE_NS : 0);
    }
    if (refused != (before.began_ns != 0)) {
        c->hygenicc.refused += refused ? 1u : -1u;
        tell(host, &before, refused, now_ns, admission->share);
    }
}

void xco_refusals_set(struct xco_coordinator *c, int64_t now_ns) {
    const struct xco_peers *peers = &c->hygenicc.peers;
    for (unsigned host = 0; c->hygenicc.admissions != NULL && host < peers->count; host++) {
        const struct xco_peer *peer = &peers->list[host];
        set(c, host, now_ns,
            &(struct xco_admission_heard){peer->told.packets, peer->told.marks, peer->heard_ns});
    }
}

void xco_refusals_lift(struct xco_coordinator *c, int64_t now_ns) {
    const size_t hosts = c->hygenicc.peers.count;
    for (unsigned host = 0; c->hygenicc.refused > 0 && host < hosts; host++) {
        if (xco_refusals_stands(c, host)) {
            set(c, host, now_ns, &(struct xco_admission_heard){0});
        }
    }
}

bool xco_refusals_stands(const struct xco_coordinator *c, unsigned host) {
    const struct xco_hygenicc *h = &c->hygenicc;
    return h->admissions != NULL && host < h->peers.count && h->admissions[host].began_ns != 0;
}

unsigned xco_refusals_hosts(const struct xco_coordinator *c) {
    return c->hygenicc.refused;
}

uint64_t xco_refusals_attempts(const struct xco_coordinator *c) {
    uint64_t attempts = 0;
    for (size_t host = 0; host < c->hygenicc.peers.count; host++) {
        attempts += xco_classifier_refused(&c->places.classifier, (uint16_t)host);
    }
    return attempts;
}

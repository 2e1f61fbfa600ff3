// VMs with weights and guarantees: follows their interfaces, and gives each a queue behind every
// gate; part of the coordinator's shell.
#include "coordinator/vms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "coordinator/vm_queues.h"
#include "common/log.h"

static const char *const COLUMNS[] = {"name_high",      "name_low",   "weight",
                                      "guarantee_mbps", "sent_bytes", "destinations"};

// Logs what weights and guarantees have no effect on.
static void warn(const struct xco_coordinator *c) {
    if (!c->places.stand) {
        xco_say("%s: weights and guarantees of VMs have no effect, since u32 filters classify",
                c->config.interface);
    } else if (c->config.tree.paced) {
        xco_say("%s: weights and guarantees of VMs act between hosts only, since gates are times "
                "of departure",
                c->config.interface);
    }
}

int xco_vms_open(struct xco_coordinator *c) {
    xco_vms_begin(&c->vms.shares);
    c->vms.work_ns = XCO_NEVER; // until one comes
    if (c->config.vm_count == 0) {
        return 0;
    }
    warn(c);
    c->vms.listed = calloc(c->config.vm_count, sizeof *c->vms.listed);
    if (c->vms.listed == NULL) {
        return -ENOMEM;
    }
    const struct xco_stats_layout layout = {
        .column_names = COLUMNS,
        .columns = sizeof COLUMNS / sizeof COLUMNS[0],
        .rows = XCO_SLOTS,
    };
    bool published = c->config.vms_file[0] != '\0' && c->places.stand;
    return published && xco_stats_open(&c->vms.statistics, c->config.vms_file, &layout) < 0 ? -errno
                                                                                            : 0;
}

static bool is_used(const struct xco_coordinator *c) {
    return c->vms.listed != NULL && c->places.stand;
}

static void release(struct xco_coordinator *c, struct xco_listed *vm) {
    if (vm->queued) { // first the packets, then their queues
        xco_classifier_unlist(&c->places.classifier, vm->interface);
    }
    if (vm->slot != 0) {
        xco_vms_set(&c->vms.shares, vm->slot, (struct xco_slot){0});
        xco_vm_queues_begin(c);
    }
    *vm = (struct xco_listed){0};
}

static void assign(struct xco_coordinator *c, struct xco_listed *vm, unsigned slot) {
    xco_vms_set(&c->vms.shares, slot, c->config.vms[vm - c->vms.listed].share);
    vm->slot = slot;
    xco_vm_queues_begin(c);
}

static void count(struct xco_coordinator *c) {
    c->vms.here = c->vms.beyond = 0;
    for (size_t i = 0; i < c->config.vm_count; i++) {
        const struct xco_listed *vm = &c->vms.listed[i];
        c->vms.here += vm->queued;
        c->vms.beyond += vm->interface != 0 && vm->slot == 0;
    }
}

// Gives slots to VMs that have none, and counts.
static void settle(struct xco_coordinator *c) {
    for (size_t i = 0; i < c->config.vm_count; i++) {
        struct xco_listed *vm = &c->vms.listed[i];
        unsigned slot = vm->slot == 0 ? xco_vms_free(&c->vms.shares) : 0;
        if (vm->interface != 0 && slot != 0) {
            assign(c, vm, slot);
        }
    }
    count(c);
    if (c->vms.beyond > 0 && !c->vms.told) {
        xco_say("%s: more than %u listed VMs are here: the others count as unlisted",
                c->config.interface, XCO_SLOTS - XCO_SOURCES);
    }
    c->vms.told = c->vms.beyond > 0;
}

void xco_vms_scan(struct xco_coordinator *c) {
    for (size_t i = 0; is_used(c) && i < c->config.vm_count; i++) {
        struct xco_listed *vm = &c->vms.listed[i];
        unsigned interface = if_nametoindex(c->config.vms[i].interface);
        if (vm->interface != interface) {
            release(c, vm);
            vm->interface = interface;
        }
    }
    if (is_used(c)) {
        settle(c);
    }
}

// Returns the number of the VM with an interface of this index; vm_count: there is none.
static size_t holder(const struct xco_coordinator *c, unsigned interface) {
    size_t vm = 0;
    while (vm < c->config.vm_count && c->vms.listed[vm].interface != interface) {
        vm++;
    }
    return vm;
}

// An interface has a name, or is gone (NULL).
static void follow(struct xco_coordinator *c, unsigned interface, const char *name) {
    const size_t none = c->config.vm_count, old = holder(c, interface);
    const size_t new = name == NULL ? none : xco_config_vm(&c->config, name);
    if (old == new) {
        return;
    }
    if (old != none) {
        release(c, &c->vms.listed[old]);
    }
    if (new != none) {
        release(c, &c->vms.listed[new]);
        c->vms.listed[new].interface = interface;
    }
    settle(c);
}

static const char *name_in(const struct nlmsghdr *event) {
    const struct ifinfomsg *link = NLMSG_DATA(event);
    const struct rtattr *attribute = IFLA_RTA(link);
    size_t left = IFLA_PAYLOAD(event);
    for (; RTA_OK(attribute, (int)left); attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type == IFLA_IFNAME) {
            return RTA_DATA(attribute);
        }
    }
    return NULL;
}

void xco_vms_hear(struct xco_coordinator *c, const void *events, size_t length) {
    const struct nlmsghdr *event = events;
    for (; is_used(c) && NLMSG_OK(event, length); event = NLMSG_NEXT(event, length)) {
        const struct ifinfomsg *link = NLMSG_DATA(event);
        bool gone = event->nlmsg_type == RTM_DELLINK;
        // other families tell of a bridge's ports, which stay interfaces when they leave it
        if ((gone || event->nlmsg_type == RTM_NEWLINK) && link->ifi_family == AF_UNSPEC) {
            follow(c, (unsigned)link->ifi_index, gone ? NULL : name_in(event));
        }
    }
}

void xco_vms_read(struct xco_coordinator *c, int64_t now_ns, unsigned gate) {
    if (is_used(c)) {
        xco_vms_look(&c->vms.shares, now_ns, gate,
                     xco_classifier_slots(&c->places.classifier, gate),
                     &c->core.destinations[gate]);
    }
}

// Has a VM's packets go to its queues.
static void enqueue(struct xco_coordinator *c, struct xco_listed *vm) {
    int error = xco_classifier_list(&c->places.classifier, vm->interface, vm->slot);
    if (error != 0) {
        xco_say("%s: no share of its own: %s", c->config.vms[vm - c->vms.listed].interface,
                strerror(-error));
    }
    vm->queued = true;
}

void xco_vms_work(struct xco_coordinator *c, int64_t now_ns) {
    xco_vm_queues_work(c, now_ns);
    for (size_t i = 0; i < c->config.vm_count; i++) {
        struct xco_listed *vm = &c->vms.listed[i];
        if (vm->slot != 0 && !vm->queued && xco_vm_queues_stand(c, vm->slot)) {
            enqueue(c, vm);
        }
    }
    count(c);
}

static void write_row(struct xco_coordinator *c, const struct xco_listed *vm, uint64_t *row) {
    const struct xco_config_vm *entry = &c->config.vms[vm - c->vms.listed];
    const struct xco_vms *shares = &c->vms.shares;
    memcpy(row, entry->interface, sizeof entry->interface);
    row[2] = entry->share.weight;
    row[3] = entry->share.guarantee_mbps;
    row[4] = shares->sent_bytes[vm->slot];
    row[5] = shares->active[vm->slot];
}

void xco_vms_publish(struct xco_coordinator *c, int64_t now_ns) {
    if (c->vms.statistics.header == NULL) {
        return;
    }
    size_t used = 0;
    xco_stats_begin(&c->vms.statistics);
    for (size_t i = 0; i < c->config.vm_count; i++) {
        if (c->vms.listed[i].queued) {
            write_row(c, &c->vms.listed[i], xco_stats_row(&c->vms.statistics, used++));
        }
    }
    c->vms.statistics.header->rows_used = used;
    xco_stats_end(&c->vms.statistics, (uint64_t)now_ns);
}

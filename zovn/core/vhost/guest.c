/* Attaches a guest's rings to a line of the switch, and detaches them. */
#include "vhost/guest.h"

#include <unistd.h>

#include <rte_vhost.h>

#include "system/log.h"
#include "vhost/call.h"
#include "vhost/guard.h"

/* What is found out for an attachment. */
struct attaching {
    struct zovn_guest *guest;
    struct zovn_line *line;
    int device;
    struct zovn_ring_settings settings;
    struct zovn_ring_pair more[ZOVN_MOST_PAIRS];
};

static struct zovn_vhost_files files_of(const struct zovn_line *line, int device, uint32_t ring) {
    struct zovn_vhost_files files = zovn_vhost_files(device, ring);
    if (files.refused)
        zovn_say("%s: ring %u: a notification that is no eventfd is not used", line->options.name,
                 ring);
    return files;
}

static void close_files(const struct zovn_vhost_files *files) {
    if (files->call >= 0)
        close(files->call);
    if (files->kick >= 0)
        close(files->kick);
}

static void notify(void *context, uint32_t pair, bool receive) {
    const struct zovn_guest *guest = context;
    int call = guest->pairs[pair].files[receive ? ZOVN_RECEIVE : ZOVN_TRANSMIT].call;
    if (call >= 0)
        zovn_call(call);
}

static void closed(void *context, uint32_t pair, const struct zovn_ring_pair *rings) {
    struct zovn_guest_rings *own = &((struct zovn_guest *)context)->pairs[pair];
    own->next_avail[ZOVN_TRANSMIT] = rings->transmit.next_avail;
    own->next_used[ZOVN_TRANSMIT] = rings->transmit.next_used;
    own->next_avail[ZOVN_RECEIVE] = rings->receive.next_avail;
    own->next_used[ZOVN_RECEIVE] = rings->receive.next_used;
}

/* Frames that an earlier process held go on; without a record they may be lost, or repeat. */
static void record(const struct attaching *attaching, struct zovn_guest_rings *own,
                   struct zovn_split_ring *ring) {
    const struct zovn_port_options *options = &attaching->line->options;
    struct zovn_record_of about;
    if (ring->inflight)
        return;
    if (zovn_vhost_about(attaching->device, ring, &about))
        ring->inflight = zovn_record_open(&own->record, options->path, own->number, &about, ring);
    if (!ring->inflight)
        zovn_say("%s: what is held is not recorded", options->name);
}

static const char *find_pair(struct attaching *attaching, uint32_t number) {
    struct zovn_guest *guest = attaching->guest;
    struct zovn_ring_pair rings;
    struct zovn_guest_rings *own = &guest->pairs[guest->count++];
    *own = (struct zovn_guest_rings){.number = number};
    for (uint32_t i = 0; i < ZOVN_RINGS; i++)
        own->files[i] = files_of(attaching->line, attaching->device, number * ZOVN_RINGS + i);
    const char *problem = zovn_vhost_pair(attaching->device, number, &guest->memory, &rings);
    if (problem)
        return problem;
    record(attaching, own, &rings.transmit);
    if (number) {
        attaching->more[attaching->settings.more_count++] = rings;
    } else {
        attaching->settings.transmit = rings.transmit;
        attaching->settings.receive = rings.receive;
    }
    return NULL;
}

static const char *find(struct attaching *attaching, uint32_t pairs) {
    struct zovn_guest *guest = attaching->guest;
    if (guest->memory.lost)
        return "its memory was truncated: connect again";
    const char *problem =
        zovn_vhost_device(attaching->device, &guest->memory, &attaching->settings);
    for (uint32_t i = 0; !problem && i < ZOVN_MOST_PAIRS; i++)
        if (pairs >> i & 1)
            problem = find_pair(attaching, i);
    return problem;
}

static const char *attach(const struct attaching *attaching) {
    struct zovn_guest *guest = attaching->guest;
    struct zovn_port *port = zovn_ring_port_new(&attaching->settings);
    if (!port)
        return "there is no memory for it";
    struct zovn_attachment attachment = {.port = port, .ask = zovn_ring_port_ask};
    for (uint32_t i = 0; i < guest->count; i++)
        for (uint32_t j = 0; j < ZOVN_RINGS; j++)
            attachment.wakes[attachment.wake_count++] = guest->pairs[i].files[j].kick;
    const char *problem = NULL;
    guest->attached = zovn_line_attach(attaching->line, &attachment, &problem);
    if (!guest->attached)
        port->calls->free(port);
    return problem;
}

static void release(struct zovn_guest *guest) {
    zovn_guard_drop(&guest->memory.lost);
    for (uint32_t i = 0; i < guest->count; i++) {
        zovn_record_close(&guest->pairs[i].record);
        for (uint32_t j = 0; j < ZOVN_RINGS; j++)
            close_files(&guest->pairs[i].files[j]);
    }
    guest->count = 0;
}

static void say_attached(const struct attaching *attaching) {
    const struct zovn_ring_settings *settings = &attaching->settings;
    zovn_say("%s: guest attached, rings of %u and %u%s%s%s", attaching->line->options.name,
             settings->transmit.size, settings->receive.size,
             settings->transmit.event_index ? ", event_idx" : "",
             settings->transmit.indirect ? ", indirect" : "",
             settings->mergeable ? ", mergeable" : "");
    if (settings->more_count)
        zovn_say("%s: %u pairs of rings", attaching->line->options.name, attaching->guest->count);
}

void zovn_guest_attach(struct zovn_guest *guest, struct zovn_line *line, int device,
                       uint32_t pairs) {
    struct attaching attaching = {
        .guest = guest,
        .line = line,
        .device = device,
        .settings = {.notify = notify, .closed = closed, .context = guest},
    };
    attaching.settings.more = attaching.more;
    const char *problem = find(&attaching, pairs);
    if (!problem)
        problem = attach(&attaching);
    if (!problem) {
        say_attached(&attaching);
        return;
    }
    release(guest);
    zovn_say("%s: the guest cannot be attached: %s", line->options.name, problem);
}

static void keep_bases(const struct zovn_guest *guest, int device) {
    for (uint32_t i = 0; i < guest->count; i++)
        for (uint32_t j = 0; j < ZOVN_RINGS; j++)
            rte_vhost_set_vring_base(device, (uint16_t)(guest->pairs[i].number * ZOVN_RINGS + j),
                                     guest->pairs[i].next_avail[j], guest->pairs[i].next_used[j]);
}

void zovn_guest_detach(struct zovn_guest *guest, struct zovn_line *line, int device) {
    if (!guest->attached)
        return;
    zovn_line_detach(line);
    guest->attached = false;
    keep_bases(guest, device);
    release(guest);
    zovn_say("%s: guest detached", line->options.name);
}

struct replacement {
    struct zovn_vhost_files *to, files;
};

/* librte_vhost answers before it says so: what was notified since went to the old file. */
static void replace(void *context) {
    const struct replacement *replacement = context;
    *replacement->to = replacement->files;
    if (replacement->files.call >= 0)
        zovn_call(replacement->files.call);
}

void zovn_guest_refresh(struct zovn_guest *guest, struct zovn_line *line, int device,
                        uint32_t ring) {
    uint32_t at = 0;
    while (guest->pairs[at].number != ring / ZOVN_RINGS)
        at++;
    struct zovn_vhost_files *own = &guest->pairs[at].files[ring % ZOVN_RINGS];
    const struct zovn_vhost_files old = *own;
    struct replacement replacement = {own, files_of(line, device, ring)};
    zovn_line_rewake(line, at * ZOVN_RINGS + ring % ZOVN_RINGS, replacement.files.kick, replace,
                     &replacement);
    close_files(&old);
}

uint32_t zovn_guest_pairs(const struct zovn_guest *guest) {
    uint32_t pairs = 0;
    for (uint32_t i = 0; guest->attached && i < guest->count; i++)
        pairs |= UINT32_C(1) << guest->pairs[i].number;
    return pairs;
}

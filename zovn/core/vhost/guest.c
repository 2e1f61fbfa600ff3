/* Attaches a guest's rings to a line of the switch, and detaches them. */
#include "vhost/guest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rte_vhost.h>

#include "system/log.h"
#include "vhost/call.h"
#include "vhost/guard.h"

enum { MOST_HEADS = 32768 }; /* of a port, for the switch */

static const char UNRECORDED[] =
    "if the switch is killed, frames that it holds then can be lost or repeated";

static struct zovn_vhost_files files_of(const struct zovn_line *line, int device, uint32_t ring) {
    struct zovn_vhost_files files = zovn_vhost_files(device, ring);
    if (files.refused)
        zovn_say("%s: ring %u: a notification that is no eventfd is not used", line->options.name,
                 ring);
    if (files.error)
        zovn_say("%s: ring %u: there are no notifications, and its guest may hang: %s",
                 line->options.name, ring, strerror(files.error));
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
static void record(struct zovn_guest_rings *own, const struct zovn_port_options *options,
                   int device, struct zovn_split_ring *ring) {
    struct zovn_record_of about;
    if (ring->inflight)
        return;
    if (!zovn_vhost_about(device, ring, &about)) {
        zovn_say("%s: the file of the guest's memory is not known: %s", options->name, UNRECORDED);
        return;
    }
    ring->inflight = zovn_record_open(&own->record, options->path, own->number, &about, ring);
    if (!ring->inflight)
        zovn_say("%s: %s cannot be written: %s: %s", options->name,
                 zovn_record_path(options->path, own->number).text, strerror(errno), UNRECORDED);
}

/* Find the next pair; return NULL, or the problem. */
static const char *find_pair(struct zovn_guest *guest, const struct zovn_line *line, int device,
                             uint32_t number, struct zovn_ring_pair *rings) {
    struct zovn_guest_rings *own = &guest->pairs[guest->count++];
    *own = (struct zovn_guest_rings){.number = number};
    for (uint32_t i = 0; i < ZOVN_RINGS; i++)
        own->files[i] = files_of(line, device, number * ZOVN_RINGS + i);
    const char *problem = zovn_vhost_pair(device, number, &guest->recorded, &guest->memory, rings);
    if (!problem)
        record(own, &line->options, device, &rings->transmit);
    return problem;
}

static uint32_t most_heads(uint32_t heads) {
    return heads < MOST_HEADS ? heads : MOST_HEADS;
}

static const char *find(struct zovn_guest *guest, const struct zovn_line *line, int device,
                        struct zovn_ring_settings *settings) {
    struct zovn_ring_pair rings;
    if (guest->memory.lost)
        return "its memory was truncated: connect again";
    const char *problem = zovn_vhost_device(device, &guest->memory, settings);
    if (!problem)
        problem = find_pair(guest, line, device, 0, &rings);
    if (problem)
        return problem;
    settings->transmit = rings.transmit;
    settings->receive = rings.receive;
    settings->heads = most_heads(rings.transmit.size * line->options.queues);
    return NULL;
}

static const char *add_port(struct zovn_guest *guest, struct zovn_line *line,
                            const struct zovn_ring_settings *settings) {
    struct zovn_attachment attachment = {.port = zovn_ring_port_new(settings),
                                         .ask = zovn_ring_port_ask,
                                         .wake_count = ZOVN_MOST_RINGS};
    if (!attachment.port)
        return "there is no memory for it";
    for (uint32_t i = 0; i < ZOVN_MOST_RINGS; i++)
        attachment.wakes[i] = i < ZOVN_RINGS ? guest->pairs[0].files[i].kick : -1;
    const char *problem = NULL;
    if (zovn_line_attach(line, &attachment, &problem))
        guest->port = attachment.port;
    else
        attachment.port->calls->free(attachment.port);
    return problem;
}

static void release_pair(struct zovn_guest_rings *own) {
    zovn_record_close(&own->record);
    for (uint32_t i = 0; i < ZOVN_RINGS; i++)
        close_files(&own->files[i]);
}

static void release(struct zovn_guest *guest) {
    zovn_guard_drop(&guest->memory.lost);
    zovn_dirty_use(&guest->dirty, &guest->memory, &(struct zovn_dirty_log){0});
    while (guest->count)
        release_pair(&guest->pairs[--guest->count]);
}

static void say_attached(const char *name, const struct zovn_ring_settings *settings) {
    zovn_say("%s: guest attached, rings of %u and %u%s%s%s", name, settings->transmit.size,
             settings->receive.size, settings->transmit.event_index ? ", event_idx" : "",
             settings->transmit.indirect ? ", indirect" : "",
             settings->mergeable ? ", mergeable" : "");
}

void zovn_guest_attach(struct zovn_guest *guest, struct zovn_line *line, int device,
                       uint32_t pairs) {
    struct zovn_ring_settings settings = {.notify = notify, .closed = closed, .context = guest};
    const struct zovn_dirty_log log = zovn_dirty_find(&guest->dirty, device);
    const char *problem = find(guest, line, device, &settings);
    zovn_dirty_use(&guest->dirty, &guest->memory, &log);
    if (!problem)
        problem = add_port(guest, line, &settings);
    if (problem) {
        release(guest);
        zovn_say("%s: the guest cannot be attached: %s", line->options.name, problem);
        return;
    }
    say_attached(line->options.name, &settings);
    zovn_guest_extend(guest, line, device, pairs);
}

/* A pair that the forwarding thread adds. */
struct addition {
    struct zovn_port *port;
    struct zovn_ring_pair rings;
    bool added;
};

static void add(void *context) {
    struct addition *addition = context;
    addition->added = zovn_ring_port_add(addition->port, &addition->rings);
}

static void nothing(void *context) {
    (void)context;
}

/* A pair that cannot be used leaves nothing behind. */
static const char *add_pair(struct zovn_guest *guest, struct zovn_line *line, int device,
                            uint32_t number) {
    const uint32_t first = guest->count * ZOVN_RINGS;
    struct zovn_guest_rings *own = &guest->pairs[guest->count];
    struct addition addition = {.port = guest->port};
    const char *problem = find_pair(guest, line, device, number, &addition.rings);
    if (!problem) {
        zovn_line_rewake(line, first, own->files[0].kick, nothing, NULL);
        zovn_line_rewake(line, first + 1, own->files[1].kick, add, &addition);
        problem = addition.added ? NULL : "its transmit rings have too many entries";
    }
    if (problem) {
        zovn_line_rewake(line, first, -1, nothing, NULL);
        zovn_line_rewake(line, first + 1, -1, nothing, NULL);
        release_pair(own);
        guest->count--;
    }
    return problem;
}

void zovn_guest_extend(struct zovn_guest *guest, struct zovn_line *line, int device,
                       uint32_t pairs) {
    const char *problem = NULL, *name = line->options.name;
    uint32_t missing = pairs & ~zovn_guest_pairs(guest);
    for (uint32_t i = 0; !problem && i < ZOVN_MOST_PAIRS; i++)
        if (missing >> i & 1)
            problem = add_pair(guest, line, device, i);
    if (problem)
        zovn_say("%s: a pair of rings is not used: %s", name, problem);
    else if (missing)
        zovn_say("%s: %u pairs of rings", name, guest->count);
}

static void keep_bases(const struct zovn_guest *guest, int device) {
    for (uint32_t i = 0; i < guest->count; i++)
        for (uint32_t j = 0; j < ZOVN_RINGS; j++)
            rte_vhost_set_vring_base(device, (uint16_t)(guest->pairs[i].number * ZOVN_RINGS + j),
                                     guest->pairs[i].next_avail[j], guest->pairs[i].next_used[j]);
}

void zovn_guest_detach(struct zovn_guest *guest, struct zovn_line *line, int device) {
    if (!guest->port)
        return;
    zovn_line_detach(line);
    guest->port = NULL;
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

struct logging {
    struct zovn_guest *guest;
    struct zovn_dirty_log log;
};

static void use_log(void *context) {
    const struct logging *logging = context;
    zovn_dirty_use(&logging->guest->dirty, &logging->guest->memory, &logging->log);
}

void zovn_guest_relog(struct zovn_guest *guest, struct zovn_line *line, int device) {
    struct logging logging = {guest, zovn_dirty_find(&guest->dirty, device)};
    if (guest->port && (logging.log.bits || guest->memory.log))
        zovn_forwarder_call(line->forwarder, use_log, &logging);
}

uint32_t zovn_guest_pairs(const struct zovn_guest *guest) {
    uint32_t pairs = 0;
    for (uint32_t i = 0; guest->port && i < guest->count; i++)
        pairs |= UINT32_C(1) << guest->pairs[i].number;
    return pairs;
}

/* Attaches a guest's rings to the switch while they may be used. */
#include "vhost/session.h"

#include <unistd.h>

#include <rte_vhost.h>

#include "system/log.h"
#include "vhost/call.h"
#include "vhost/guard.h"

/* Requests of the vhost-user protocol that this file knows. */
enum {
    RESET_OWNER = 4,
    SET_MEM_TABLE = 5,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR = 9,
    SET_VRING_BASE = 10,
    GET_VRING_BASE = 11,
    SET_VRING_KICK = 12,
    SET_VRING_CALL = 13,
    GET_INFLIGHT_FD = 31,
    SET_INFLIGHT_FD = 32,
};

void zovn_session_init(struct zovn_session *session, struct zovn_forwarder *forwarder,
                       const struct zovn_port_options *options) {
    *session = (struct zovn_session){.device = -1};
    zovn_line_init(&session->line, forwarder, options);
}

static struct zovn_vhost_files files_of(const struct zovn_session *session, uint32_t ring) {
    struct zovn_vhost_files files = zovn_vhost_files(session->device, ring);
    if (files.refused)
        zovn_say("%s: ring %u: a notification that is no eventfd is not used",
                 session->line.options.name, ring);
    return files;
}

static void close_files(const struct zovn_vhost_files *files) {
    if (files->call >= 0)
        close(files->call);
    if (files->kick >= 0)
        close(files->kick);
}

static void notify(void *context, bool receive) {
    const struct zovn_session *session = context;
    int call = session->files[receive ? ZOVN_RECEIVE : ZOVN_TRANSMIT].call;
    if (call >= 0)
        zovn_call(call);
}

static void keep(struct zovn_session *session, uint32_t number,
                 const struct zovn_split_ring *ring) {
    session->next_avail[number] = ring->next_avail;
    session->next_used[number] = ring->next_used;
}

static void closed(void *context, const struct zovn_split_ring *transmit,
                   const struct zovn_split_ring *receive) {
    keep(context, ZOVN_TRANSMIT, transmit);
    keep(context, ZOVN_RECEIVE, receive);
}

static const char *attach_rings(struct zovn_session *session,
                                const struct zovn_ring_settings *settings) {
    struct zovn_port *port = zovn_ring_port_new(settings);
    if (!port)
        return "there is no memory for it";
    const struct zovn_attachment attachment = {
        .port = port,
        .ask = zovn_ring_port_ask,
        .wakes = {session->files[ZOVN_RECEIVE].kick, session->files[ZOVN_TRANSMIT].kick},
    };
    const char *problem = NULL;
    session->attached = zovn_line_attach(&session->line, &attachment, &problem);
    if (!session->attached)
        port->calls->free(port);
    return problem;
}

/* Frames that an earlier process held go on; without a record they may be lost, or repeat. */
static void record(struct zovn_session *session, struct zovn_split_ring *ring) {
    struct zovn_record_of about;
    if (ring->inflight)
        return;
    if (zovn_vhost_about(session->device, ring, &about))
        ring->inflight =
            zovn_record_open(&session->record, session->line.options.path, &about, ring);
    if (!ring->inflight)
        zovn_say("%s: what is held is not recorded", session->line.options.name);
}

static const char *find_rings(struct zovn_session *session, struct zovn_ring_settings *settings) {
    bool *lost = &session->memory.lost;
    if (*lost)
        return "its memory was truncated: connect again";
    const char *problem = zovn_vhost_rings(session->device, &session->memory, settings);
    if (!problem && !zovn_vhost_guard(session->device, &settings->transmit, lost))
        return "there is no room to guard its memory";
    return problem;
}

static void attach(struct zovn_session *session) {
    struct zovn_ring_settings settings = {.notify = notify, .closed = closed, .context = session};
    const char *problem = find_rings(session, &settings);
    if (!problem) {
        record(session, &settings.transmit);
        for (uint32_t i = 0; i < ZOVN_RINGS; i++)
            session->files[i] = files_of(session, i);
        problem = attach_rings(session, &settings);
        for (uint32_t i = 0; problem && i < ZOVN_RINGS; i++)
            close_files(&session->files[i]);
        if (problem)
            zovn_record_close(&session->record);
    }
    if (problem)
        zovn_guard_drop(&session->memory.lost);
    const char *name = session->line.options.name;
    if (problem)
        zovn_say("%s: the guest cannot be attached: %s", name, problem);
    else
        zovn_say("%s: guest attached, rings of %u and %u%s%s%s", name, settings.transmit.size,
                 settings.receive.size, settings.transmit.event_index ? ", event_idx" : "",
                 settings.transmit.indirect ? ", indirect" : "",
                 settings.mergeable ? ", mergeable" : "");
}

static void attach_if_ready(struct zovn_session *session) {
    bool enabled = session->enabled[ZOVN_RECEIVE] && session->enabled[ZOVN_TRANSMIT];
    if (session->running && session->mapped && enabled && !session->attached)
        attach(session);
}

/* All descriptors are given back then, so the next index says all about a ring. */
static void detach(struct zovn_session *session) {
    if (!session->attached)
        return;
    zovn_line_detach(&session->line);
    session->attached = false;
    zovn_guard_drop(&session->memory.lost);
    zovn_record_close(&session->record);
    for (uint32_t i = 0; i < ZOVN_RINGS; i++) {
        rte_vhost_set_vring_base(session->device, (uint16_t)i, session->next_avail[i],
                                 session->next_used[i]);
        close_files(&session->files[i]);
    }
    zovn_say("%s: guest detached", session->line.options.name);
}

struct replacement {
    struct zovn_session *session;
    uint32_t ring;
    struct zovn_vhost_files files;
};

/* librte_vhost answers before it says so: what was notified since went to the old file. */
static void replace(void *context) {
    const struct replacement *replacement = context;
    replacement->session->files[replacement->ring] = replacement->files;
    if (replacement->files.call >= 0)
        zovn_call(replacement->files.call);
}

/* A guest masks its interrupts by other files: this must not cost a frame. */
static void refresh(struct zovn_session *session, uint32_t ring) {
    const struct zovn_vhost_files old = session->files[ring];
    struct replacement replacement = {session, ring, files_of(session, ring)};
    zovn_line_rewake(&session->line, ring, replacement.files.kick, replace, &replacement);
    close_files(&old);
}

bool zovn_session_connect(struct zovn_session *session, int device) {
    if (session->device >= 0)
        return false;
    session->device = device;
    session->memory.lost = false;
    return true;
}

void zovn_session_disconnect(struct zovn_session *session) {
    session->device = -1;
    session->mapped = false;
    zovn_guard_thread(NULL);
    session->enabled[ZOVN_RECEIVE] = session->enabled[ZOVN_TRANSMIT] = false;
}

void zovn_session_run(struct zovn_session *session) {
    session->running = true;
    attach_if_ready(session);
}

void zovn_session_stop(struct zovn_session *session) {
    detach(session);
    session->running = false;
}

/* librte_vhost disables a ring while it replaces a file, and enables it after that. */
void zovn_session_enable(struct zovn_session *session, uint32_t ring, bool enable) {
    bool replaces = session->message == SET_VRING_KICK || session->message == SET_VRING_CALL;
    if (ring >= ZOVN_RINGS || (!enable && replaces))
        return;
    session->enabled[ring] = enable;
    if (!enable)
        detach(session);
    else if (session->attached)
        refresh(session, ring);
    else
        attach_if_ready(session);
}

static bool moves_rings(uint32_t message) {
    return message == RESET_OWNER || message == SET_MEM_TABLE || message == GET_INFLIGHT_FD ||
           message == SET_INFLIGHT_FD || (message >= SET_VRING_NUM && message <= GET_VRING_BASE);
}

void zovn_session_before(struct zovn_session *session, uint32_t message) {
    session->message = message;
    zovn_guard_thread(&session->memory.lost);
    if (moves_rings(message))
        detach(session);
    if (message == SET_MEM_TABLE)
        session->mapped = false;
}

/* Not called for a message that failed. A ring without its addresses is not valid: it is attached
 * when they are known again. */
void zovn_session_after(struct zovn_session *session) {
    bool moved = moves_rings(session->message);
    session->mapped |= session->message == SET_MEM_TABLE;
    session->message = 0;
    if (moved)
        attach_if_ready(session);
}

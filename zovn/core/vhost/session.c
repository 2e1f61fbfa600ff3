/* Has a guest attached while its rings may be used. */
#include "vhost/session.h"

#include <string.h>

#include "rings/inflight.h"
#include "vhost/guard.h"

enum { RECORD_ALIGN = 64 }; /* records follow each other at multiples of this */

/* Requests of the vhost-user protocol that this file knows. */
enum {
    SET_FEATURES = 2,
    RESET_OWNER = 4,
    SET_MEM_TABLE = 5,
    SET_LOG_BASE = 6,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR = 9,
    SET_VRING_BASE = 10,
    GET_VRING_BASE = 11,
    SET_VRING_KICK = 12,
    SET_VRING_CALL = 13,
    SEND_RARP = 19,
    IOTLB_MSG = 22,
    POSTCOPY_ADVISE = 28,
    POSTCOPY_END = 30,
    GET_INFLIGHT_FD = 31,
    SET_INFLIGHT_FD = 32,
};

void zovn_session_init(struct zovn_session *session, struct zovn_forwarder *forwarder,
                       const struct zovn_port_options *options) {
    *session = (struct zovn_session){.device = -1};
    zovn_line_init(&session->line, forwarder, options);
}

/* Pairs of which both rings are enabled, as bits; none without the first one. */
static uint32_t enabled_pairs(const struct zovn_session *session) {
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < session->line.options.queues; i++) {
        const bool *rings = &session->enabled[i * ZOVN_RINGS];
        pairs |= (uint32_t)(rings[ZOVN_RECEIVE] && rings[ZOVN_TRANSMIT]) << i;
    }
    return pairs & 1 ? pairs : 0;
}

static void detach(struct zovn_session *session) {
    zovn_guest_detach(&session->guest, &session->line, session->device);
}

/* Pairs are added to those that are in use; one that goes has all others detached for a moment. */
static void attach_if_ready(struct zovn_session *session) {
    uint32_t pairs = session->running && session->mapped ? enabled_pairs(session) : 0;
    uint32_t attached = zovn_guest_pairs(&session->guest);
    if (attached & ~pairs) {
        detach(session);
        attached = 0;
    }
    if (pairs && !attached)
        zovn_guest_attach(&session->guest, &session->line, session->device, pairs);
    else if (pairs & ~attached)
        zovn_guest_extend(&session->guest, &session->line, session->device, pairs);
}

bool zovn_session_connect(struct zovn_session *session, int device) {
    if (session->device >= 0)
        return false;
    session->device = device;
    session->guest.memory.lost = session->guest.dirty.known = false;
    session->guest.recorded = (struct zovn_recorded){0};
    return true;
}

void zovn_session_disconnect(struct zovn_session *session) {
    session->device = -1;
    session->mapped = false;
    zovn_guard_thread(NULL);
    memset(session->enabled, 0, sizeof session->enabled);
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
    if (ring >= ZOVN_MOST_RINGS || (!enable && replaces))
        return;
    session->enabled[ring] = enable;
    if (enable && zovn_guest_pairs(&session->guest) >> ring / ZOVN_RINGS & 1)
        zovn_guest_refresh(&session->guest, &session->line, session->device, ring);
    attach_if_ready(session);
}

static bool is_of_records(uint32_t message) {
    return message == GET_INFLIGHT_FD || message == SET_INFLIGHT_FD;
}

static bool moves_all(uint32_t message) {
    return message == RESET_OWNER || message == SET_MEM_TABLE || is_of_records(message);
}

static bool moves_one(uint32_t message) {
    return message >= SET_VRING_NUM && message <= GET_VRING_BASE;
}

/* To begin a log, a front end says again where its rings are. */
static bool stays(const struct zovn_session *session, const struct zovn_place *says) {
    const struct zovn_place *place = &session->places[says->ring];
    return says->descriptors == place->descriptors && says->used == place->used &&
           says->avail == place->avail;
}

/* Nothing is written while one log takes the place of another: librte_vhost answers before that is
 * done. A front end begins rings while others are in use. */
static bool moves_attached(const struct zovn_session *session, uint32_t message,
                           const struct zovn_place *says) {
    bool replaces_log = message == SET_LOG_BASE && session->guest.memory.log;
    if (moves_all(message) || replaces_log)
        return true;
    uint32_t pairs = zovn_guest_pairs(&session->guest);
    return moves_one(message) && says->ring < ZOVN_MOST_RINGS &&
           pairs >> says->ring / ZOVN_RINGS & 1 &&
           !(message == SET_VRING_ADDR && stays(session, says));
}

static void forget_log(struct zovn_session *session) {
    session->guest.dirty.known = false;
    zovn_guest_relog(&session->guest, &session->line, session->device);
}

/* librte_vhost unmaps the records, even if it then refuses others. */
static void forget_records(struct zovn_session *session) {
    session->guest.recorded = (struct zovn_recorded){0};
}

/* librte_vhost makes, or maps, the records that the message asks for, and writes into each. */
static bool are_possible(const struct zovn_session *session, uint32_t message,
                         const struct zovn_records *says) {
    const uint64_t rings = says->rings, entries = says->entries;
    const uint64_t bytes =
        sizeof(struct zovn_inflight) + entries * sizeof(struct zovn_inflight_entry);
    const uint64_t each = (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
    return rings <= session->line.options.queues * ZOVN_RINGS &&
           (message == GET_INFLIGHT_FD || rings * each <= says->bytes);
}

/* librte_vhost handles what was not offered, too. After POSTCOPY_ADVISE each access to the guest's memory
 * may wait for the front end. */
static bool is_acceptable(const struct zovn_session *session, uint32_t message,
                          const union zovn_says *says) {
    if (message == IOTLB_MSG || (message >= POSTCOPY_ADVISE && message <= POSTCOPY_END))
        return false;
    return !is_of_records(message) || are_possible(session, message, &says->records);
}

static void note(struct zovn_session *session, uint32_t message, const union zovn_says *says) {
    if (message == SET_VRING_ADDR && says->place.ring < ZOVN_MOST_RINGS)
        session->places[says->place.ring] = says->place;
    if (message == SET_MEM_TABLE)
        session->mapped = false;
    if (message == SET_LOG_BASE || message == RESET_OWNER)
        forget_log(session);
    if (is_of_records(message) || message == RESET_OWNER)
        forget_records(session);
    if (message == SET_INFLIGHT_FD)
        session->said = (struct zovn_recorded){says->records.rings, says->records.entries};
}

struct announcing {
    const struct zovn_session *session;
    const uint8_t *ethernet;
};

/* A front end asks several times: where there is no room now, the next time will do. */
static void announce_now(void *context) {
    const struct announcing *announcing = context;
    const struct zovn_line *line = &announcing->session->line;
    zovn_switch_announce(line->forwarder->vswitch, (uint32_t)line->place, announcing->ethernet);
}

/* Only librte_vhost's thread, which this is, attaches a guest. */
static void announce(struct zovn_session *session, const uint8_t *ethernet) {
    struct announcing announcing = {session, ethernet};
    if (session->guest.port)
        zovn_forwarder_call(session->line.forwarder, announce_now, &announcing);
}

bool zovn_session_before(struct zovn_session *session, uint32_t message,
                         const union zovn_says *says) {
    session->message = message;
    zovn_guard_thread(&session->guest.memory.lost);
    if (!is_acceptable(session, message, says))
        return false;
    if (moves_attached(session, message, &says->place))
        detach(session);
    note(session, message, says);
    if (message == SEND_RARP)
        announce(session, says->ethernet);
    return true;
}

/* Not called for a message that failed. A ring without its addresses is not valid: it is attached
 * when they are known again. */
void zovn_session_after(struct zovn_session *session) {
    bool moved = moves_all(session->message) || moves_one(session->message) ||
                 session->message == SET_LOG_BASE;
    session->mapped |= session->message == SET_MEM_TABLE;
    if (session->message == SET_INFLIGHT_FD)
        session->guest.recorded = session->said;
    session->guest.dirty.known |= session->message == SET_LOG_BASE;
    if (session->message == SET_LOG_BASE || session->message == SET_FEATURES)
        zovn_guest_relog(&session->guest, &session->line, session->device);
    session->message = 0;
    if (moved)
        attach_if_ready(session);
}

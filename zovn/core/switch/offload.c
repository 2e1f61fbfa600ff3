/* Checksums and segments for ports that do not take them unfinished. */
#include "switch/offload.h"

#include <string.h>

#include "switch/checksum.h"
#include "switch/words.h"

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t missing(const struct zovn_facts *facts, uint32_t takes) {
    return (uint32_t)zovn_offloads_of(&facts->offload) & ~takes;
}

static bool cut(const struct zovn_facts *facts, uint32_t takes) {
    return facts->offload.kind && missing(facts, takes);
}

static uint32_t checksum_at(const struct zovn_offload *offload) {
    return (uint32_t)offload->checksum_start + offload->checksum_offset;
}

bool zovn_offload_fits(const struct zovn_facts *facts, uint32_t takes) {
    if (!missing(facts, takes))
        return true;
    return facts->offload.kind ? facts->payload_at > 0
                               : checksum_at(&facts->offload) + 2 <= ZOVN_MOST_HEADERS;
}

static uint32_t left(const struct zovn_facts *facts, uint32_t done) {
    return facts->length - facts->payload_at - done;
}

uint32_t zovn_offload_length(const struct zovn_facts *facts, uint32_t takes, uint32_t done) {
    if (!cut(facts, takes))
        return facts->length;
    return facts->payload_at + least(facts->offload.segment_bytes, left(facts, done));
}

uint32_t zovn_offload_step(const struct zovn_facts *facts, uint32_t takes, uint32_t done) {
    bool more = cut(facts, takes) && left(facts, done) > facts->offload.segment_bytes;
    return more ? facts->offload.segment_bytes : 0;
}

static struct zovn_piece piece_of(const struct zovn_facts *facts, uint32_t done) {
    uint32_t most = facts->offload.segment_bytes;
    return (struct zovn_piece){
        .network_at = zovn_network_at(facts),
        .transport_at = facts->offload.checksum_start,
        .payload_at = facts->payload_at,
        .udp = zovn_offloads_of(&facts->offload) & ZOVN_UDP_SEGMENTS,
        .number = done / most,
        .from = done,
        .bytes = least(most, left(facts, done)),
        .last = left(facts, done) <= most,
    };
}

/* Take the first bytes of a frame away; the header is the one that was classified. */
static void take_head(struct zovn_finished *finished, struct zovn_frame *frame, uint32_t length) {
    zovn_frame_peek(frame, finished->head, length);
    memcpy(finished->head, finished->facts.header, least(length, ZOVN_HEADER));
    zovn_frame_trim(frame, length);
}

static void cut_out(struct zovn_finished *finished, struct zovn_frame *frame, uint32_t done) {
    struct zovn_piece piece = piece_of(&finished->facts, done);
    zovn_frame_trim(frame, piece.from);
    zovn_frame_keep(frame, piece.bytes);
    zovn_segment_headers(finished->head, &piece, finished->facts.length);
}

const struct zovn_facts *zovn_offload_finish(struct zovn_finished *finished,
                                             const struct zovn_facts *facts, uint32_t takes,
                                             uint32_t done, struct zovn_frame *frame) {
    if (!missing(facts, takes))
        return facts;
    const struct zovn_offload *offload = &facts->offload;
    uint32_t at = checksum_at(offload);
    uint32_t head = offload->kind ? facts->payload_at : least(facts->length, ZOVN_MOST_HEADERS);
    finished->facts = *facts;
    take_head(finished, frame, head);
    if (offload->kind)
        cut_out(finished, frame, done);
    zovn_frame_prepend(frame, finished->head, head);
    zovn_set_word(&finished->head[at],
                  zovn_checksum_of(zovn_checksum_sum(frame, offload->checksum_start)));
    memcpy(finished->facts.header, finished->head, least(head, ZOVN_HEADER));
    finished->facts.offload = frame->offload = (struct zovn_offload){0};
    return &finished->facts;
}

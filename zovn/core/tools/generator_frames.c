/* Frames that say from where to where they go, and their number among those. */
#include <string.h>

#include "tools/generator.h"

enum { MAGIC = 0x7a6f7667, HEADER = 14 };

struct content {
    uint32_t magic;
    uint16_t from, to;
    uint64_t number;
};

static void address(uint8_t *at, uint16_t station) {
    const uint8_t bytes[] = {2, 0, 0, 0, 0, (uint8_t)(station + 1)};
    memcpy(at, bytes, sizeof bytes);
}

void generator_write(uint8_t *frame, uint16_t from, uint16_t to, uint64_t number) {
    const struct content content = {MAGIC, from, to, number};
    address(frame, to);
    address(frame + 6, from);
    frame[12] = 0x88; /* a type for experiments */
    frame[13] = 0xb5;
    memcpy(frame + HEADER, &content, sizeof content);
}

static uint64_t *word(struct generator_tally *tally, uint64_t number) {
    return &tally->seen[number % GENERATOR_SEEN / 64];
}

static void forget_gap(struct generator_tally *tally, uint64_t number) {
    uint64_t from = tally->next;
    if (number - from > GENERATOR_SEEN)
        from = number - GENERATOR_SEEN;
    for (; from < number; from++)
        *word(tally, from) &= ~(UINT64_C(1) << from % 64);
}

/* Of a number from long ago nothing is known: it counts as overtaken. */
static void note_late(struct generator_tally *tally, uint64_t number) {
    uint64_t bit = UINT64_C(1) << number % 64;
    bool known = number + GENERATOR_SEEN >= tally->next;
    if (known && *word(tally, number) & bit)
        tally->repeated++;
    else
        tally->overtaken++;
    if (known)
        *word(tally, number) |= bit;
}

static void note(struct generator_tally *tally, uint64_t number) {
    tally->received++;
    if (number < tally->next) {
        note_late(tally, number);
        return;
    }
    forget_gap(tally, number);
    *word(tally, number) |= UINT64_C(1) << number % 64;
    tally->next = number + 1;
}

bool generator_count(struct generator_station *station, const uint8_t *frame, uint32_t length) {
    struct content content;
    if (length < HEADER + sizeof content)
        return false;
    memcpy(&content, frame + HEADER, sizeof content);
    if (content.magic != MAGIC || content.to != station->number ||
        content.from >= GENERATOR_STATIONS)
        return false;
    note(&station->from[content.from], content.number);
    return true;
}

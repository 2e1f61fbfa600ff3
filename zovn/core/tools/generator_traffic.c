/* Sends and receives in turns of one thread, as fast as rings and windows allow. */
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tools/generator.h"

enum { NOWHERE = GENERATOR_STATIONS, QUIET_TURNS = 100 };
/* A sink takes no more than this later at once: it has not run, or the switch had nothing. */
static const double LEAST_TOKENS = 64, BUCKET_S = 3e-4, QUIET_S = 1;

/* What goes on in a turn. */
struct turn {
    bool sends, measured;
    double passed_s; /* since the last one, but for time in which this process did not run */
    uint64_t moved;
};

/* Frames of a pair are under way from when they are made; both stations are in this process. */
static bool open_for(const struct generator *generator, const struct generator_station *station,
                     uint16_t to) {
    if (!generator->window)
        return true;
    const struct generator_station *other = &generator->stations[to - generator->first];
    return station->made[to] - other->from[station->number].received < generator->window;
}

static uint16_t next_target(const struct generator *generator, struct generator_station *station) {
    for (uint16_t i = 0; i < station->target_count; i++) {
        uint16_t to = station->targets[station->turn];
        station->turn = (uint16_t)((station->turn + 1) % station->target_count);
        if (open_for(generator, station, to))
            return to;
    }
    return NOWHERE;
}

static void hold(const struct generator *generator, struct generator_station *station,
                 struct rte_mbuf *frame, uint16_t to) {
    uint32_t at = (station->held_first + station->held_count++) % GENERATOR_HELD;
    frame->data_len = generator->bytes;
    frame->pkt_len = generator->bytes;
    generator_write(rte_pktmbuf_mtod(frame, uint8_t *), station->number, to, station->made[to]++);
    station->held[at] = frame;
    station->held_to[at] = to;
}

static void fill(const struct generator *generator, struct generator_station *station) {
    struct rte_mbuf *frames[GENERATOR_BURST];
    uint32_t most = generator->fifo ? GENERATOR_HELD : GENERATOR_BURST, made = 0;
    uint32_t room = most - station->held_count;
    room = room < GENERATOR_BURST ? room : GENERATOR_BURST;
    if (!room || !station->target_count ||
        rte_pktmbuf_alloc_bulk(generator->pool, frames, room) != 0)
        return;
    for (uint16_t to; made < room && (to = next_target(generator, station)) != NOWHERE; made++)
        hold(generator, station, frames[made], to);
    if (made < room)
        rte_pktmbuf_free_bulk(frames + made, room - made);
}

static uint32_t run_of_held(const struct generator_station *station) {
    uint32_t until_end = GENERATOR_HELD - station->held_first;
    uint32_t run = station->held_count < until_end ? station->held_count : until_end;
    return run < GENERATOR_BURST ? run : GENERATOR_BURST;
}

static void send_some(struct generator_station *station, struct turn *turn) {
    uint32_t run = run_of_held(station);
    if (!run)
        return;
    uint16_t sent =
        rte_eth_tx_burst(station->device, 0, station->held + station->held_first, (uint16_t)run);
    station->held_count -= sent;
    station->held_first = (station->held_first + sent) % GENERATOR_HELD;
    turn->moved += sent;
    if (!station->held_count)
        station->held_first = 0; /* few cache lines */
}

/* Return how many frames a station may take now. */
static uint32_t allowed(struct generator_station *station, const struct turn *turn) {
    if (station->rate < 0 || !turn->sends)
        return GENERATOR_BURST;
    double granted = station->rate * turn->passed_s, most = station->rate * BUCKET_S;
    most = most > LEAST_TOKENS ? most : LEAST_TOKENS;
    station->tokens = station->tokens + granted < most ? station->tokens + granted : most;
    station->granted += turn->measured ? granted : 0;
    return (uint32_t)station->tokens;
}

static uint16_t receive_burst(struct generator_station *station, uint32_t most) {
    struct rte_mbuf *frames[GENERATOR_BURST];
    most = most < GENERATOR_BURST ? most : GENERATOR_BURST;
    uint16_t count = rte_eth_rx_burst(station->device, 0, frames, (uint16_t)most);
    for (uint16_t i = 0; i < count; i++)
        station->taken +=
            generator_count(station, rte_pktmbuf_mtod(frames[i], uint8_t *), frames[i]->data_len);
    if (count)
        rte_pktmbuf_free_bulk(frames, count);
    return count;
}

/* A limited station takes all that it may: the next turn may be late. */
static void receive_some(struct generator_station *station, struct turn *turn) {
    uint32_t most = allowed(station, turn), left = most;
    for (uint16_t count = 1; left && count; left -= count)
        count = receive_burst(station, left);
    station->tokens -= station->rate < 0 ? 0 : most - left;
    turn->moved += most - left;
}

static void take_turn(struct generator *generator, struct turn *turn) {
    turn->moved = 0;
    generator_await_turn(&generator->turns);
    for (uint16_t i = 0; i < generator->count; i++) {
        struct generator_station *station = &generator->stations[i];
        if (turn->sends)
            fill(generator, station);
        send_some(station, turn);
        receive_some(station, turn);
    }
    generator_pass_turn(&generator->turns);
}

static double seconds(uint64_t cycles) {
    return (double)cycles / (double)rte_get_tsc_hz();
}

/* Send for a time; return how long it was. */
static double send_for(struct generator *generator, double for_s, bool measured) {
    struct turn turn = {.sends = true, .measured = measured};
    const uint64_t begun = rte_rdtsc();
    for (uint64_t now = begun, last = begun; seconds(now - begun) < for_s; now = rte_rdtsc()) {
        turn.passed_s = seconds(now - last);
        turn.passed_s = turn.passed_s < BUCKET_S ? turn.passed_s : BUCKET_S;
        last = now;
        take_turn(generator, &turn);
    }
    return seconds(rte_rdtsc() - begun);
}

/* Frames that stations of other processes received are not known here. */
static bool all_came(const struct generator *generator) {
    uint64_t open = 0;
    for (uint16_t i = 0; i < generator->count; i++) {
        const struct generator_station *station = &generator->stations[i];
        open -= station->held_count;
        for (uint16_t j = 0; j < GENERATOR_STATIONS; j++)
            open += station->made[j] - (station->from[j].received - station->from[j].repeated);
    }
    return open == 0 && generator->alone;
}

/* Time alone proves nothing: the switch may not have run. So turns count, too. */
static void drain(struct generator *generator) {
    struct turn turn = {0};
    uint64_t last = rte_rdtsc();
    uint32_t quiet = 0;
    while (!all_came(generator) && (quiet < QUIET_TURNS || seconds(rte_rdtsc() - last) < QUIET_S)) {
        take_turn(generator, &turn);
        quiet = turn.moved ? 0 : quiet + 1;
        if (turn.moved)
            last = rte_rdtsc();
        else
            usleep(50);
    }
}

/* Once before it is measured, when it notes what came so far; and once after it. */
static void mark(struct generator *generator, bool after) {
    for (uint16_t i = 0; i < generator->count; i++) {
        struct generator_station *station = &generator->stations[i];
        station->in_time = station->taken - (after ? station->in_time : 0);
        for (uint16_t j = 0; j < GENERATOR_STATIONS; j++) {
            struct generator_tally *tally = &station->from[j];
            tally->in_time = tally->received - (after ? tally->in_time : 0);
        }
    }
}

void generator_run(struct generator *generator) {
    generator->hz = rte_get_tsc_hz();
    send_for(generator, generator->warm_s, false);
    mark(generator, false);
    generator->took_s = send_for(generator, generator->measured_s, true);
    mark(generator, true);
    drain(generator);
}

void generator_announce(struct generator *generator) {
    for (uint16_t i = 0; i < generator->count; i++) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(generator->pool);
        uint8_t *bytes = (uint8_t *)rte_pktmbuf_append(frame, GENERATOR_BYTES);
        memset(bytes, 0, GENERATOR_BYTES);
        generator_write(bytes, generator->stations[i].number, NOWHERE, 0);
        while (!rte_eth_tx_burst(generator->stations[i].device, 0, &frame, 1))
            usleep(100);
    }
}

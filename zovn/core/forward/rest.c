/* Doubles the sleep while nothing moves, as far as what the switch waits for allows. */
#include "forward/rest.h"

enum { STEPS = 256, POLLS = 64 };

static uint64_t smaller(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static uint64_t between(uint64_t least, uint64_t value, uint64_t most) {
    return value < least ? least : smaller(value, most);
}

static uint64_t idle_nap_ns(uint32_t polled) {
    uint64_t all_ns = (uint64_t)polled * ZOVN_NAP_OF_PORT_NS;
    return between(ZOVN_LEAST_IDLE_NAP_NS, all_ns, ZOVN_MOST_IDLE_NAP_NS);
}

uint32_t zovn_rest_steps(uint32_t polled) {
    return polled ? POLLS / polled + 1 : STEPS;
}

uint64_t zovn_rest_ns(uint32_t polled, uint64_t before_ns, uint64_t due_ns) {
    if (!polled)
        return smaller(ZOVN_LONGEST_NAP_NS, due_ns);
    uint64_t most_ns = idle_nap_ns(polled);
    uint64_t longer_ns = before_ns < most_ns ? 2 * before_ns : most_ns;
    return smaller(between(ZOVN_FIRST_NAP_NS, longer_ns, most_ns), due_ns);
}

// Random numbers that a seed repeats.
#include <math.h>

#include "random.h"

static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

uint64_t random_bits(struct random *random) {
    random->state += 0x9E3779B97F4A7C15U;
    return mixed(random->state);
}

double random_unit(struct random *random) {
    return (double)(random_bits(random) >> 11) * 0x1p-53;
}

uint32_t random_below(struct random *random, uint32_t bound) {
    return (uint32_t)(random_unit(random) * bound);
}

double random_exponential(struct random *random, double mean) {
    return -mean * log1p(-random_unit(random));
}

uint32_t random_hash(uint64_t value) {
    return (uint32_t)(mixed(value + 0x9E3779B97F4A7C15U) >> 32);
}

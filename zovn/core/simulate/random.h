// Random numbers that a seed repeats: splitmix64, and the distributions that the traffic needs.
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

uint64_t random_bits(struct random *random);

// Uniform in [0, 1).
double random_unit(struct random *random);

// Uniform in [0, bound); bound > 0.
uint32_t random_below(struct random *random, uint32_t bound);

double random_exponential(struct random *random, double mean);

// A hash of a number: it chooses paths by flow.
uint32_t random_hash(uint64_t value);

#endif

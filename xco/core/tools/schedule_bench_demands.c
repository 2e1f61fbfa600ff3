/* The benchmark's networks and demands: Poisson arrivals, as Fastpass's benchmark has them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/schedule_bench_parts.h"

enum { RACK = 20, ROW = 10, MOST_MATRIX = 2048, FIRST_BITS = 10, DESTINATIONS = 8 };
static const uint64_t GIGABIT = 1000000000u;
static const double MEAN_SLICES = 10.0;

/* A host and destination with slices left; key 0: empty. */
struct left {
    uint64_t key;
    uint64_t slices;
};

/* xorshift64*, Vigna 2016; above 0 and below 1. */
static double draw(uint64_t *random) {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return ((double)((*random * 0x2545f4914f6cdd1du) >> 11) + 0.5) * 0x1p-53;
}

/* How much each of n hosts below a link may send, evenly to all others, to load it that much. */
static double allowed(double capacity, uint32_t below, uint32_t hosts) {
    double crossing = (double)below * (hosts - below) / (hosts - 1);
    return crossing > 0 ? capacity / crossing : INFINITY;
}

static void make_tree(struct network *network, double load) {
    uint32_t racks = (network->hosts + RACK - 1) / RACK, rows = (racks + ROW - 1) / ROW;
    uint32_t core = network->hosts, made = 0;
    for (uint32_t row = 0; row < rows; row++)
        network->links[made++] = (struct xco_tree_link){core + 1 + row, core, 10 * GIGABIT};
    for (uint32_t rack = 0; rack < racks; rack++)
        network->links[made++] =
            (struct xco_tree_link){core + 1 + rows + rack, core + 1 + rack / ROW, 10 * GIGABIT};
    for (uint32_t x = 0; x < network->hosts; x++)
        network->links[made++] = (struct xco_tree_link){x, core + 1 + rows + x / RACK, GIGABIT};
    network->switches = 1 + rows + racks;
    network->rate = load * fmin(fmin(1.0, allowed(10.0, RACK, network->hosts)),
                                allowed(10.0, RACK * ROW, network->hosts));
}

static void make_star(struct network *network, double load) {
    for (uint32_t x = 0; x < network->hosts; x++)
        network->links[x] = (struct xco_tree_link){x, network->hosts, GIGABIT};
    network->switches = 1;
    network->rate = load;
}

int network_make(struct network *network, uint32_t hosts, bool tree, double load) {
    *network = (struct network){.hosts = hosts};
    network->links = malloc(2 * ((size_t)hosts + 2) * sizeof *network->links);
    if (!network->links)
        return -ENOMEM;
    if (tree)
        make_tree(network, load);
    else
        make_star(network, load);
    return 0;
}

void network_free(struct network *network) {
    free(network->links);
}

/* Every host requests its destinations within the first slice, so that slices begin out of step. */
static void fill_greedy(struct demands *demands, uint64_t seed) {
    uint64_t random = seed * 0x9e3779b97f4a7c15u | 1;
    for (uint32_t i = 0; i < DESTINATIONS * demands->hosts; i++) {
        uint32_t host = i % demands->hosts;
        uint32_t other = (uint32_t)(draw(&random) * (demands->hosts - 1));
        demands->all[demands->count++] = (struct demand){
            .at_ns = (uint64_t)SLICE_NS * i / (DESTINATIONS * demands->hosts),
            .host = host,
            .destination = other + (other >= host),
            .slices = UINT32_MAX / 2 / DESTINATIONS,
        };
    }
}

/* All arrivals together are one Poisson process; each is of a uniformly random host. */
static void fill(struct demands *demands, const struct network *network, uint32_t slices,
                 uint64_t seed, size_t room) {
    uint64_t random = seed * 0x9e3779b97f4a7c15u | 1;
    double gap = MEAN_SLICES / (network->rate * network->hosts), at = 0.0;
    while (demands->count < room) {
        at -= log(draw(&random)) * gap;
        if (at >= slices)
            return;
        uint32_t host = (uint32_t)(draw(&random) * network->hosts);
        uint32_t other = (uint32_t)(draw(&random) * (network->hosts - 1));
        /* Rounded up, an exponential of mean m - 1/2 has a mean of about m. */
        double size = ceil(-log(draw(&random)) * (MEAN_SLICES - 0.5));
        demands->all[demands->count++] = (struct demand){
            .at_ns = (uint64_t)(at * SLICE_NS),
            .host = host,
            .destination = other + (other >= host),
            .slices = (uint32_t)size,
        };
    }
}

int demands_make(struct demands *demands, const struct network *network, uint32_t slices,
                 uint64_t seed) {
    double expected = network->rate * network->hosts * slices / MEAN_SLICES;
    size_t room = (size_t)(expected + 6 * sqrt(expected)) + 16;
    if (network->greedy)
        room = (size_t)DESTINATIONS * network->hosts;
    *demands =
        (struct demands){.hosts = network->hosts, .bits = FIRST_BITS, .endless = network->greedy};
    demands->all = malloc(room * sizeof *demands->all);
    if (network->hosts <= MOST_MATRIX)
        demands->matrix = calloc((size_t)network->hosts * network->hosts, sizeof(uint32_t));
    else
        demands->table = calloc((size_t)1 << demands->bits, sizeof *demands->table);
    if (!demands->all || (!demands->matrix && !demands->table))
        return -ENOMEM;
    if (network->greedy)
        fill_greedy(demands, seed);
    else
        fill(demands, network, slices, seed, room);
    return 0;
}

void demands_free(struct demands *demands) {
    free(demands->all);
    free(demands->matrix);
    free(demands->table);
}

static uint64_t key_of(uint32_t host, uint32_t destination) {
    return ((uint64_t)host << 32 | destination) + 1;
}

static size_t home_of(const struct demands *demands, uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15u >> (64 - demands->bits));
}

static struct left *entry(const struct demands *demands, uint64_t key) {
    size_t mask = ((size_t)1 << demands->bits) - 1, at = home_of(demands, key);
    while (demands->table[at].key && demands->table[at].key != key)
        at = (at + 1) & mask;
    return &demands->table[at];
}

/* Keep at least half of the table empty. */
static int table_room(struct demands *demands) {
    size_t old_size = (size_t)1 << demands->bits;
    if (2 * (demands->entries + 1) <= old_size)
        return 0;
    struct left *old = demands->table, *new = calloc(2 * old_size, sizeof *new);
    if (!new)
        return -ENOMEM;
    demands->table = new;
    demands->bits++;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].key)
            *entry(demands, old[i].key) = old[i];
    free(old);
    return 0;
}

/* Empty a slot, and close the gap: entries that probed past it move up. */
static void table_remove(struct demands *demands, size_t gap) {
    size_t mask = ((size_t)1 << demands->bits) - 1;
    for (size_t at = (gap + 1) & mask; demands->table[at].key; at = (at + 1) & mask) {
        size_t home = home_of(demands, demands->table[at].key);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            demands->table[gap] = demands->table[at];
            gap = at;
        }
    }
    demands->table[gap].key = 0;
    demands->entries--;
}

int demands_more(struct demands *demands, const struct demand *demand, uint32_t *left) {
    if (demands->matrix) {
        size_t at = (size_t)demand->host * demands->hosts + demand->destination;
        *left = demands->matrix[at] += demand->slices;
        return 0;
    }
    if (table_room(demands))
        return -ENOMEM;
    uint64_t key = key_of(demand->host, demand->destination);
    struct left *found = entry(demands, key);
    if (!found->key) {
        *found = (struct left){.key = key};
        demands->entries++;
    }
    found->slices += demand->slices;
    *left = (uint32_t)found->slices;
    return 0;
}

void demands_one_less(struct demands *demands, uint32_t host, uint32_t destination,
                      uint32_t *left) {
    if (demands->matrix) {
        *left = --demands->matrix[(size_t)host * demands->hosts + destination];
        return;
    }
    struct left *found = entry(demands, key_of(host, destination));
    *left = (uint32_t)--found->slices;
    if (*left == 0)
        table_remove(demands, (size_t)(found - demands->table));
}

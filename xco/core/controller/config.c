// Reads the loop file line by line into settings, links and weights.
//
//   hosts 5            before any link or weight
//   switches 1
//   link 0 5 1000000000    two nodes (hosts first, then switches) and bits/s; tree links only
//   weight 3 2             a host and its weight
//   digest 0a1b...         64 hexadecimal digits, and so is nodes_digest
#include "controller/config.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { U64, U32, U8, FLAG, TEXT };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t least;
    uint64_t most;
};

#define MINUTE_NS UINT64_C(60000000000)
#define SLICE_MOST_NS UINT64_C(10000000) // up to here gates bound what a slice sends (qdisc/tree.c)
#define CORE(field) offsetof(struct xco_controller_config, core.field)
#define SHELL(field) offsetof(struct xco_controller_config, field)

static const struct key KEYS[] = {
    {"epoch", U64, CORE(epoch), 1, UINT64_MAX},
    {"epoch_most", U64, CORE(epoch_most), 1, UINT64_MAX},
    {"slice_ns", U64, CORE(slice_ns), 100000, SLICE_MOST_NS},
    {"lead_ns", U64, CORE(lead_ns), 0, MINUTE_NS},
    {"guard_ns", U64, CORE(guard_ns), 0, MINUTE_NS},
    {"silence_ns", U64, CORE(silence_ns), 1000000, MINUTE_NS},
    {"heartbeat_ns", U64, CORE(heartbeat_ns), 100000, MINUTE_NS},
    {"drop_ns", U64, CORE(drop_ns), 1000000, MINUTE_NS},
    {"calm_ns", U64, CORE(calm_ns), 0, MINUTE_NS},
    {"threshold_ns", U64, CORE(threshold_ns), 0, UINT64_MAX},
    {"patience_ns", U64, CORE(patience_ns), 0, UINT64_MAX},
    {"pace_permille", U32, CORE(pace_permille), 1, 1000},
    {"strategy", U8, CORE(strategy), XCO_TIMESLICE, XCO_GCC},
    {"policy", U8, CORE(policy), XCO_PUBLISHED, XCO_FAIR},
    {"max_min", FLAG, CORE(max_min), 0, 1},
    {"published", FLAG, CORE(published), 0, 1},
    {"on_demand", FLAG, CORE(on_demand), 0, 1},
    {"listen", TEXT, SHELL(listen), 0, 0},
    {"port", U32, SHELL(port), 0, 65535},
    {"realtime", U32, SHELL(realtime), 0, 99},
    {"key", TEXT, SHELL(key_path), 0, 0},
    {"stats", TEXT, SHELL(stats_path), 0, 0},
    {"command", TEXT, SHELL(command_path), 0, 0},
};

// Values collected while reading.
struct reading {
    struct xco_controller_config *config;
    uint64_t hosts;
    uint64_t switches;
    struct xco_tree_link *links;
    size_t link_count;
    uint32_t *weights;
};

static bool to_number(const char *text, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    return errno == 0 && end != text && *end == '\0' && text[0] != '-' && value <= most;
}

static const char *store(const struct key *key, const char *value, void *config) {
    void *at = (char *)config + key->offset;
    if (key->kind == TEXT) {
        const size_t length = strlen(value);
        if (length == 0 || length >= XCO_CONFIG_TEXT_BYTES) {
            return "is empty or longer than 255 characters";
        }
        memcpy(at, value, length + 1);
        return NULL;
    }
    uint64_t number;
    if (!to_number(value, key->most, &number) || number < key->least) {
        return "is not a number in its range";
    }
    if (key->kind == U64) {
        *(uint64_t *)at = number;
    } else if (key->kind == U32) {
        *(uint32_t *)at = (uint32_t)number;
    } else if (key->kind == U8) {
        *(uint8_t *)at = (uint8_t)number;
    } else {
        *(bool *)at = number == 1;
    }
    return NULL;
}

static const char *read_digest(uint8_t digest[XCO_DIGEST_BYTES], const char *value) {
    size_t length = 0;
    if (sodium_hex2bin(digest, XCO_DIGEST_BYTES, value, strlen(value), NULL, &length, NULL) != 0 ||
        length != XCO_DIGEST_BYTES) {
        return "is not 64 hexadecimal digits";
    }
    return NULL;
}

// Space for the links and weights of as many nodes as the file says.
static const char *reserve(struct reading *reading) {
    if (reading->hosts == 0 || reading->hosts > XCO_HOSTS_MAX ||
        reading->switches > XCO_HOSTS_MAX) {
        return "comes before `hosts` and `switches`, or there are more than 65534 of them";
    }
    if (reading->links == NULL) {
        reading->links = calloc(reading->hosts + reading->switches, sizeof *reading->links);
        reading->weights = calloc(reading->hosts, sizeof *reading->weights);
    }
    return reading->links == NULL || reading->weights == NULL ? "out of memory" : NULL;
}

static const char *read_link(struct reading *reading, const char *value) {
    const char *problem = reserve(reading);
    if (problem != NULL) {
        return problem;
    }
    struct xco_tree_link link;
    char rest;
    if (sscanf(value, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %c", &link.a, &link.b,
               &link.capacity_bps, &rest) != 3) {
        return "is not two nodes and a capacity";
    }
    if (reading->link_count + 1 >= reading->hosts + reading->switches) {
        return "is one more than a tree has";
    }
    reading->links[reading->link_count++] = link;
    return NULL;
}

static const char *read_weight(struct reading *reading, const char *value) {
    const char *problem = reserve(reading);
    if (problem != NULL) {
        return problem;
    }
    uint32_t host;
    uint32_t weight;
    char rest;
    if (sscanf(value, "%" SCNu32 " %" SCNu32 " %c", &host, &weight, &rest) != 2 ||
        host >= reading->hosts || weight == 0 || weight > 1000000) {
        return "is not a host and a weight of 1 to 1000000";
    }
    reading->weights[host] = weight;
    return NULL;
}

static const char *read_count(uint64_t *count, const struct reading *reading, const char *value) {
    if (reading->links != NULL || !to_number(value, XCO_HOSTS_MAX, count)) {
        return "is not a number up to 65534, or comes after a link";
    }
    return NULL;
}

static const char *read_pair(struct reading *reading, const char *name, const char *value) {
    if (strcmp(name, "hosts") == 0) {
        return read_count(&reading->hosts, reading, value);
    }
    if (strcmp(name, "switches") == 0) {
        return read_count(&reading->switches, reading, value);
    }
    if (strcmp(name, "link") == 0) {
        return read_link(reading, value);
    }
    if (strcmp(name, "weight") == 0) {
        return read_weight(reading, value);
    }
    if (strcmp(name, "digest") == 0) {
        return read_digest(reading->config->core.digest, value);
    }
    if (strcmp(name, "nodes_digest") == 0) {
        return read_digest(reading->config->core.nodes_digest, value);
    }
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        if (strcmp(name, KEYS[i].name) == 0) {
            return store(&KEYS[i], value, reading->config);
        }
    }
    return "is no key";
}

static bool read_line(struct reading *reading, char *line, const char *path, unsigned number,
                      char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '\0' || line[0] == '#') {
        return true;
    }
    char *value = strchr(line, ' ');
    if (value == NULL) {
        value = line + strlen(line);
    } else {
        *value++ = '\0';
    }
    const char *why = read_pair(reading, line, value);
    if (why != NULL) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s:%u: %.32s %s", path, number, line,
                       why);
    }
    return why == NULL;
}

// Checks that need more than one line.
static const char *check_whole(const struct xco_controller_config *config) {
    const struct xco_control_settings *core = &config->core;
    if (core->epoch == 0 || core->epoch_most == 0 || core->slice_ns == 0 || core->silence_ns == 0 ||
        core->heartbeat_ns == 0 || core->drop_ns == 0 || core->pace_permille == 0) {
        return "epoch, epoch_most, slice_ns, silence_ns, heartbeat_ns, drop_ns or pace_permille is missing";
    }
    if (config->listen[0] == '\0' || config->key_path[0] == '\0') {
        return "listen or key is missing";
    }
    if (core->lead_ns + core->guard_ns >= core->slice_ns) {
        return "lead_ns and guard_ns together must be shorter than slice_ns";
    }
    if (3 * core->heartbeat_ns > core->silence_ns) {
        return "silence_ns must be at least three heartbeat_ns";
    }
    return NULL;
}

static void default_weights(struct reading *reading) {
    for (size_t host = 0; host < reading->hosts; host++) {
        reading->weights[host] = reading->weights[host] == 0 ? 1 : reading->weights[host];
    }
}

// Builds the network and hands it over; frees the collected values if that fails.
static bool finish(struct reading *reading, const char *path, struct xco_network *network,
                   uint32_t **weights, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    const char *why = check_whole(reading->config);
    why = why == NULL ? reserve(reading) : why;
    if (why == NULL) {
        default_weights(reading);
        why = xco_network_build(network, (uint32_t)reading->hosts, (uint32_t)reading->switches,
                                reading->links, reading->link_count);
        reading->links = NULL; // owned by the network, or freed
    }
    if (why != NULL) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", path, why);
        free(reading->links);
        free(reading->weights);
        return false;
    }
    *weights = reading->weights;
    return true;
}

bool xco_controller_config_read(const char *path, struct xco_controller_config *config,
                                struct xco_network *network, uint32_t **weights,
                                char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    *config = (struct xco_controller_config){0};
    struct reading reading = {.config = config};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "%.256s: %s", path, strerror(errno));
        return false;
    }
    char line[512];
    bool good = true;
    for (unsigned number = 1; good && fgets(line, sizeof line, file) != NULL; number++) {
        good = read_line(&reading, line, path, number, problem);
    }
    (void)fclose(file);
    if (!good) {
        free(reading.links);
        free(reading.weights);
        return false;
    }
    return finish(&reading, path, network, weights, problem);
}

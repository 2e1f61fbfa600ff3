// The coordinator's plain configuration, as xco/coordinator/config.py writes it.
#include "coordinator/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#define LINE_BYTES 512

// A line, split into a key and at most three values.
struct line {
    char *key, *first, *second, *third;
};

// A key with one number, and its destination.
struct number {
    const char *key;
    uint64_t *place;
    uint64_t least, most;
};

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *value) {
    char *end = NULL;
    errno = 0;
    unsigned long long number = text == NULL || *text == '-' ? 0 : strtoull(text, &end, 10);
    if (end == NULL || end == text || *end != '\0' || errno != 0 || number < least ||
        number > most) {
        return false;
    }
    *value = number;
    return true;
}

// IPv4 addresses are mapped into IPv6.
static bool read_address(const char *text, struct in6_addr *address) {
    char mapped[INET6_ADDRSTRLEN + 8];
    if (text == NULL) {
        return false;
    }
    snprintf(mapped, sizeof mapped, strchr(text, ':') == NULL ? "::ffff:%s" : "%s", text);
    return inet_pton(AF_INET6, mapped, address) == 1;
}

static bool read_digest(const char *text, uint8_t digest[XCO_DIGEST_BYTES]) {
    if (text == NULL || strlen(text) != 2 * XCO_DIGEST_BYTES) {
        return false;
    }
    for (size_t i = 0; i < XCO_DIGEST_BYTES; i++) {
        char byte[3] = {text[2 * i], text[2 * i + 1], '\0'}, *end;
        digest[i] = (uint8_t)strtoul(byte, &end, 16);
        if (*end != '\0') {
            return false;
        }
    }
    return true;
}

static bool read_text(const char *text, char *place, size_t room) {
    if (text == NULL || strlen(text) >= room) {
        return false;
    }
    memset(place, 0, room);
    memcpy(place, text, strlen(text));
    return true;
}

static bool add_controller(struct xco_coordinator_config *config, const struct line *line) {
    uint64_t port;
    struct sockaddr_in6 place = {.sin6_family = AF_INET6};
    if (config->controller_count == XCO_CONTROLLERS ||
        !read_address(line->first, &place.sin6_addr) ||
        !read_number(line->second, 1, UINT16_MAX, &port)) {
        return false;
    }
    place.sin6_port = htons((uint16_t)port);
    config->controllers[config->controller_count++] = place;
    return true;
}

// Returns a list with room for one more entry, NULL: there is no memory. It is full at a power of
// two.
static void *grown(void *list, size_t count, size_t bytes) {
    bool full = (count & (count - 1)) == 0;
    return full ? reallocarray(list, count == 0 ? 1 : 2 * count, bytes) : list;
}

static bool add_address(struct xco_host_address **list, size_t *count, const struct line *line) {
    uint64_t host;
    struct xco_host_address entry = {0}, *more;
    if (!read_address(line->first, &entry.address) ||
        !read_number(line->second, 0, XCO_HOSTS_MAX - 1, &host) ||
        (more = grown(*list, *count, sizeof entry)) == NULL) {
        return false;
    }
    entry.host = (uint16_t)host;
    *list = more;
    (*list)[(*count)++] = entry;
    return true;
}

static bool add_vm(struct xco_coordinator_config *config, const struct line *line) {
    uint64_t weight, guarantee_mbps;
    struct xco_config_vm entry, *more;
    if (!read_text(line->first, entry.interface, sizeof entry.interface) ||
        !read_number(line->second, 1, 100, &weight) ||
        !read_number(line->third, 0, UINT16_MAX, &guarantee_mbps) ||
        (more = grown(config->vms, config->vm_count, sizeof entry)) == NULL) {
        return false;
    }
    entry.share = (struct xco_slot){(uint16_t)weight, (uint16_t)guarantee_mbps};
    config->vms = more;
    config->vms[config->vm_count++] = entry;
    return true;
}

// Makes room for the ways to all hosts up to this one.
static bool reserve_way(struct xco_coordinator_config *config, size_t host) {
    if (host < config->host_count) {
        return true;
    }
    size_t count = 2 * (host + 1) < XCO_HOSTS_MAX ? 2 * (host + 1) : XCO_HOSTS_MAX;
    struct xco_way *ways = reallocarray(config->ways, count, sizeof *ways);
    if (ways == NULL) {
        return false;
    }
    memset(ways + config->host_count, 0, (count - config->host_count) * sizeof *ways);
    config->ways = ways;
    config->host_count = count;
    return true;
}

static bool add_over(struct xco_coordinator_config *config, const struct line *line) {
    uint64_t host, link, share;
    if (!read_number(line->first, 0, XCO_HOSTS_MAX - 1, &host) ||
        !read_number(line->second, 0, UINT16_MAX, &link) ||
        !read_number(line->third, 1, UINT64_MAX, &share) || !reserve_way(config, host)) {
        return false;
    }
    struct xco_way *way = &config->ways[host];
    if (way->count == XCO_WAY_LINKS) {
        return false;
    }
    way->links[way->count] = (uint16_t)link;
    way->shares_bps[way->count++] = share;
    return true;
}

// Takes a line with a number; -1: unknown key, otherwise whether the value is valid.
static int take_number(struct xco_coordinator_config *c, const struct line *line) {
    enum { SECOND = 1000000000, SMALLEST = 1000 };
    uint64_t narrow = 0;
    const struct number numbers[] = {
        {"line_bps", &c->core.line_bps, 8000, 1000000000000},
        {"pace_ppm", &c->core.pace_ppm, 1, 1000000},
        {"small_bps", &c->tree.small_bps, 8000, 1000000000000},
        {"newcomer_bps", &c->tree.newcomer_bps, 8000, 1000000000000},
        {"burst_ns", &c->tree.burst_ns, 0, SECOND},
        {"flow_bytes", &c->flow_bytes, 1, UINT32_MAX},
        {"flow_window_ns", &c->flow_window_ns, SMALLEST, 60ull * SECOND},
        {"flow_idle_ns", &c->flow_idle_ns, SMALLEST, 86400ull * SECOND},
        {"fallback_open", &c->core.fallback_open, 0, 1},
        {"hygenicc", &c->core.hygenicc, 0, 1},
        {"hosts", &c->hosts, 2, XCO_HOSTS_MAX},
        {"peer_port", &c->peer_port, 1, UINT16_MAX},
        {"published", &c->published, 0, 1},
        {"admission_ppm", &c->admission_ppm, 1, 1000000},
        {"port_bps", &c->port_bps, 8000, 1000000000000},
        {"classifier_needed", &c->classifier_needed, 0, 1},
        {"shim_keep", &c->shim_keep, 0, 1},
        {"attached", &c->attached, 0, XCO_NODES_MAX - 1},
        {"edt", &c->edt, 0, 1},
        {"edt_needed", &c->edt_needed, 0, 1},
        {"outside_bps", &c->core.outside_bps, 8000, UINT64_MAX},
        {"spin_ns", &c->spin_ns, 0, 1000000},
        {"scan_ns", &c->scan_ns, SMALLEST, SECOND},
        {"hang_ns", &c->hang_ns, 10000000, 60ull * SECOND},
        {"drain_ns", &c->drain_ns, 0, 10ull * SECOND},
        {"priority", &c->priority, 0, 98},
        {"guard_ns", (uint64_t *)&c->core.guard_ns, 0, SECOND},
        {"hysteresis_ns", (uint64_t *)&c->core.hysteresis_ns, 0, SECOND},
        {"heartbeat_ns", (uint64_t *)&c->core.heartbeat_ns, SMALLEST, 60ull * SECOND},
        {"report_gap_ns", (uint64_t *)&c->core.report_gap_ns, 0, SECOND},
        {"silence_ns", (uint64_t *)&c->core.silence_ns, 1000000, 60ull * SECOND},
        {"hello_ns", (uint64_t *)&c->core.hello_ns, SMALLEST, 60ull * SECOND},
        {"poll_open_ns", (uint64_t *)&c->core.poll_open_ns, SMALLEST, SECOND},
        {"poll_closed_ns", (uint64_t *)&c->core.poll_closed_ns, SMALLEST, SECOND},
        {"host", &narrow, 0, XCO_HOSTS_MAX - 1},
        {"small_bytes", &narrow, 64, 32768},
        {"newcomer_bytes", &narrow, 2048, INT32_MAX},
        {"queue_bytes", &narrow, 2048, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *n = &numbers[i];
        if (strcmp(line->key, n->key) != 0) {
            continue;
        }
        if (!read_number(line->first, n->least, n->most, n->place)) {
            return false;
        }
        c->core.host = strcmp(n->key, "host") == 0 ? (uint16_t)narrow : c->core.host;
        uint32_t *sizes[] = {&c->tree.small_bytes, &c->tree.newcomer_bytes, &c->tree.queue_bytes};
        const char *names[] = {"small_bytes", "newcomer_bytes", "queue_bytes"};
        for (int s = 0; s < 3; s++) {
            *sizes[s] = strcmp(n->key, names[s]) == 0 ? (uint32_t)narrow : *sizes[s];
        }
        return true;
    }
    return -1;
}

// Takes any line; -1: unknown key, otherwise whether its values are valid.
static int take(struct xco_coordinator_config *config, const struct line *line) {
    if (strcmp(line->key, "interface") == 0) {
        return read_text(line->first, config->interface, sizeof config->interface);
    }
    if (strcmp(line->key, "key_file") == 0) {
        return read_text(line->first, config->key_file, sizeof config->key_file);
    }
    if (strcmp(line->key, "statistics") == 0) {
        return read_text(line->first, config->statistics, sizeof config->statistics);
    }
    if (strcmp(line->key, "epoch_file") == 0) {
        return read_text(line->first, config->epoch_file, sizeof config->epoch_file);
    }
    if (strcmp(line->key, "classifier") == 0) {
        return read_text(line->first, config->classifier, sizeof config->classifier);
    }
    if (strcmp(line->key, "shim") == 0) {
        return read_text(line->first, config->shim, sizeof config->shim);
    }
    if (strcmp(line->key, "marks") == 0) {
        return read_text(line->first, config->marks, sizeof config->marks);
    }
    if (strcmp(line->key, "vms_file") == 0) {
        return read_text(line->first, config->vms_file, sizeof config->vms_file);
    }
    if (strcmp(line->key, "places_file") == 0) {
        return read_text(line->first, config->places_file, sizeof config->places_file);
    }
    if (strcmp(line->key, "locations_file") == 0) {
        return read_text(line->first, config->locations_file, sizeof config->locations_file);
    }
    if (strcmp(line->key, "switch") == 0) {
        return read_text(line->first, config->switch_socket, sizeof config->switch_socket);
    }
    if (strcmp(line->key, "digest") == 0) {
        return read_digest(line->first, config->digest);
    }
    if (strcmp(line->key, "nodes_digest") == 0) {
        return read_digest(line->first, config->nodes_digest);
    }
    if (strcmp(line->key, "controller") == 0) {
        return add_controller(config, line);
    }
    if (strcmp(line->key, "address") == 0) {
        return add_address(&config->addresses, &config->address_count, line);
    }
    if (strcmp(line->key, "peer") == 0) {
        return add_address(&config->peers, &config->peer_count, line);
    }
    if (strcmp(line->key, "vm") == 0) {
        return add_vm(config, line);
    }
    return strcmp(line->key, "over") == 0 ? add_over(config, line) : take_number(config, line);
}

static int by_address(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct in6_addr)); // the first member of both
}

static int by_interface(const void *a, const void *b) {
    return strcmp(a, b); // the first member of both
}

static void set_defaults(struct xco_coordinator_config *config) {
    memset(config, 0, sizeof *config);
    config->tree = (struct xco_tree){
        .small_bytes = 128, .newcomer_bytes = 262144, .queue_bytes = 4000000, .burst_ns = 20000};
    config->core = (struct xco_core_config){
        .pace_ppm = 980000,
        .guard_ns = 50000,
        .hysteresis_ns = 50000,
        .heartbeat_ns = 5000000,
        .report_gap_ns = 100000,
        .silence_ns = 50000000,
        .hello_ns = 100000000,
        .poll_open_ns = 50000,
        .poll_closed_ns = 250000,
    };
    config->flow_bytes = 8192;
    config->flow_window_ns = 10000000;
    config->flow_idle_ns = 10000000000;
    config->spin_ns = 100000;
    config->scan_ns = 500000;
    config->hang_ns = 1000000000;
    config->drain_ns = 100000000;
    config->priority = 50;
}

static bool without_peers(const struct xco_coordinator_config *config) {
    return config->core.hygenicc &&
           (config->hosts == 0 || config->peer_port == 0 || config->port_bps == 0);
}

// Returns what a complete configuration lacks, NULL: nothing.
static const char *lacking(const struct xco_coordinator_config *config) {
    uint32_t small = config->tree.small_bytes;
    return config->interface[0] == '\0'     ? "interface: missing"
           : config->key_file[0] == '\0'    ? "key_file: missing"
           : config->core.line_bps == 0     ? "line_bps: missing"
           : config->tree.small_bps == 0    ? "small_bps: missing"
           : config->core.outside_bps == 0  ? "outside_bps: missing"
           : config->tree.newcomer_bps == 0 ? "newcomer_bps: missing"
           : without_peers(config)          ? "hosts, peer_port or port_bps: missing"
           : config->controller_count == 0 && !config->core.hygenicc ? "controller: missing"
           : (small & (small - 1)) != 0 ? "small_bytes: not a power of two"
                                        : NULL;
}

bool xco_config_read(struct xco_coordinator_config *config, FILE *file, char *message,
                     size_t room) {
    char text[LINE_BYTES];
    set_defaults(config);
    for (unsigned number = 1; fgets(text, sizeof text, file) != NULL; number++) {
        char *rest = NULL;
        struct line line = {.key = strtok_r(text, " \n", &rest)};
        if (line.key == NULL) {
            continue;
        }
        line.first = strtok_r(NULL, " \n", &rest);
        line.second = strtok_r(NULL, " \n", &rest);
        line.third = strtok_r(NULL, " \n", &rest);
        int taken = take(config, &line);
        if (taken <= 0) {
            snprintf(message, room, "line %u: %s: %s", number, line.key,
                     taken < 0 ? "no such key" : "bad value");
            return false;
        }
    }
    if (config->address_count > 0) {
        qsort(config->addresses, config->address_count, sizeof *config->addresses, by_address);
    }
    if (config->vm_count > 0) {
        qsort(config->vms, config->vm_count, sizeof *config->vms, by_interface);
    }
    const char *problem = ferror(file) ? "cannot be read" : lacking(config);
    if (problem != NULL) {
        snprintf(message, room, "%s", problem);
    }
    return problem == NULL;
}

void xco_config_free(struct xco_coordinator_config *config) {
    free(config->addresses);
    free(config->peers);
    free(config->ways);
    free(config->vms);
    config->addresses = config->peers = NULL;
    config->ways = NULL;
    config->vms = NULL;
    config->address_count = config->peer_count = config->host_count = config->vm_count = 0;
}

uint16_t xco_config_host(const struct xco_coordinator_config *config,
                         const struct in6_addr *address) {
    const struct xco_host_address *entry = NULL;
    if (config->address_count > 0) {
        entry = bsearch(address, config->addresses, config->address_count,
                        sizeof *config->addresses, by_address);
    }
    return entry == NULL ? XCO_CONTROLLER : entry->host;
}

size_t xco_config_vm(const struct xco_coordinator_config *config, const char *interface) {
    const struct xco_config_vm *entry = NULL;
    if (config->vm_count > 0) {
        entry = bsearch(interface, config->vms, config->vm_count, sizeof *entry, by_interface);
    }
    return entry == NULL ? config->vm_count : (size_t)(entry - config->vms);
}

uint32_t xco_config_hosts(const struct xco_coordinator_config *config) {
    const size_t known = config->hosts > 0 ? config->hosts : config->host_count;
    return known > 0 ? (uint32_t)known : 1;
}

const struct xco_way *xco_config_way(const struct xco_coordinator_config *config, uint16_t host) {
    static const struct xco_way none;
    return host < config->host_count ? &config->ways[host] : &none;
}

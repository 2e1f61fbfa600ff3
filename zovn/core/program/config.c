/* Reads the plain configuration. */
#include "program/config.h"

#include <string.h>

enum { MOST_CONTROL = ZOVN_PATH_BYTES - 1 };

static bool read_control(struct zovn_config *config, char *line) {
    const char *path = zovn_word(&line);
    if (!path || *path != '/' || strlen(path) > MOST_CONTROL)
        return false;
    memcpy(config->control, path, strlen(path) + 1);
    return true;
}

static bool read_one(char *line, uint64_t most, uint64_t *number) {
    const char *word = zovn_word(&line);
    return word && zovn_number(word, most, number) && !zovn_word(&line);
}

static bool read_group(struct zovn_config *config, char *line) {
    uint64_t group = 0;
    if (!read_one(line, UINT32_MAX - 1, &group))
        return false;
    config->control_group = (int64_t)group;
    return true;
}

static bool read_stall(struct zovn_config *config, char *line) {
    return read_one(line, UINT64_MAX, &config->settings.stall_ns);
}

static bool read_age(struct zovn_config *config, char *line) {
    return read_one(line, UINT64_MAX, &config->settings.age_ns);
}

static bool read_addresses(struct zovn_config *config, char *line) {
    uint64_t number = 0;
    bool good = read_one(line, UINT32_MAX, &number);
    config->settings.addresses = (uint32_t)number;
    return good;
}

static bool read_parked(struct zovn_config *config, char *line) {
    uint64_t number = 0;
    bool good = read_one(line, UINT32_MAX, &number);
    config->settings.parked = (uint32_t)number;
    return good;
}

static bool read_threads(struct zovn_config *config, char *line) {
    uint64_t number = 0;
    bool good = read_one(line, UINT32_MAX, &number);
    config->settings.threads = (uint32_t)number;
    return good;
}

/* class NUMBER LIMIT MARK WEIGHT */
static bool read_class(struct zovn_config *config, char *line) {
    static const uint64_t MOST[] = {ZOVN_CLASSES - 1, UINT64_MAX, UINT64_MAX, UINT32_MAX};
    uint64_t values[4];
    for (uint32_t i = 0; i < 4; i++) {
        const char *word = zovn_word(&line);
        if (!word || !zovn_number(word, MOST[i], &values[i]))
            return false;
    }
    config->settings.classes[values[0]] =
        (struct zovn_class_settings){values[1], values[2], (uint32_t)values[3]};
    return true;
}

static bool read_map(char *line, uint8_t *classes, uint64_t count) {
    uint64_t from = 0, class = 0;
    const char *word = zovn_word(&line);
    if (!word || !zovn_number(word, count - 1, &from) || !read_one(line, ZOVN_CLASSES - 1, &class))
        return false;
    classes[from] = (uint8_t)class;
    return true;
}

static bool read_priority(struct zovn_config *config, char *line) {
    return read_map(line, config->settings.class_of_priority, 8);
}

static bool read_dscp(struct zovn_config *config, char *line) {
    return read_map(line, config->settings.class_of_dscp, 64);
}

static bool read_port(struct zovn_config *config, char *line) {
    if (config->port_count == ZOVN_MOST_PORTS || strlen(line) >= ZOVN_LINE_BYTES)
        return false;
    memcpy(config->ports[config->port_count++], line, strlen(line) + 1);
    return true;
}

static const struct {
    const char *key;
    bool (*read)(struct zovn_config *config, char *line);
} KEYS[] = {
    {"control", read_control}, {"control_group", read_group}, {"stall_ns", read_stall},
    {"age_ns", read_age},      {"addresses", read_addresses}, {"parked", read_parked},
    {"class", read_class},     {"priority", read_priority},   {"dscp", read_dscp},
    {"port", read_port},       {"threads", read_threads},
};

static bool read_line(struct zovn_config *config, char *line, struct zovn_problem *problem) {
    const char *key = zovn_word(&line);
    if (!key)
        return true;
    for (uint32_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (strcmp(KEYS[i].key, key) == 0)
            return KEYS[i].read(config, line) || zovn_refuse(problem, "%s: malformed", key);
    return zovn_refuse(problem, "%.32s: no such key", key);
}

bool zovn_config_read(struct zovn_config *config, FILE *file, struct zovn_problem *problem) {
    char line[ZOVN_LINE_BYTES];
    *config = (struct zovn_config){.control_group = -1};
    zovn_settings_default(&config->settings);
    while (fgets(line, sizeof line, file)) {
        if (!strchr(line, '\n'))
            return zovn_refuse(problem, "a line is too long, or its end is missing");
        if (!read_line(config, line, problem))
            return false;
    }
    if (!*config->control)
        return zovn_refuse(problem, "control: missing");
    const char *wrong = zovn_settings_problem(&config->settings);
    return !wrong || zovn_refuse(problem, "%s", wrong);
}

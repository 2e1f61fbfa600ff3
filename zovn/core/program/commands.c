/* add WORDS, remove NAME, list, status, stations [PLACE], quit. */
#include "program/commands.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "program/stations.h"
#include "system/log.h"

static bool add(struct zovn_ports *ports, char *line, FILE *answer, struct zovn_problem *problem) {
    (void)answer;
    if (!zovn_ports_add(ports, line, problem))
        return false;
    const struct zovn_named *added = &ports->named[ports->count - 1];
    zovn_say("%s: port added; there are %" PRIu32, added->kind->line(added->opened)->options.name,
             ports->count);
    return true;
}

static bool drop(struct zovn_ports *ports, char *line, FILE *answer, struct zovn_problem *problem) {
    (void)answer;
    const char *name = zovn_word(&line);
    if (!name)
        return zovn_refuse(problem, "remove: write the name of a port");
    if (!zovn_ports_remove(ports, name, problem))
        return false;
    zovn_say("%s: port removed; there are %" PRIu32, name, ports->count);
    return true;
}

static bool list(struct zovn_ports *ports, char *line, FILE *answer, struct zovn_problem *problem) {
    (void)line;
    (void)problem;
    zovn_ports_write(ports, false, answer);
    return true;
}

/* CPU time of a thread so far. While it has frames it does not sleep: then it uses a whole CPU. */
static uint64_t used_ns(pthread_t thread) {
    clockid_t clock;
    struct timespec used = {0};
    if (!pthread_getcpuclockid(thread, &clock))
        clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void write_used(const struct zovn_threads *threads, FILE *to) {
    for (uint32_t i = 0; i < threads->count; i++)
        fprintf(to, "%s%" PRIu64, i ? "," : " cpu_ns=", used_ns(threads->each[i].thread));
}

static bool status(struct zovn_ports *ports, char *line, FILE *answer,
                   struct zovn_problem *problem) {
    uint64_t missed;
    uint64_t naps = zovn_forwarder_naps(ports->forwarder, &missed);
    fprintf(answer,
            "switch ports=%" PRIu32 " lossy=%" PRIu32 " threads=%" PRIu32 " naps=%" PRIu64
            " missed=%" PRIu64,
            ports->count, ports->lossy, ports->forwarder->threads.count, naps, missed);
    write_used(&ports->forwarder->threads, answer);
    fputc('\n', answer);
    (void)line;
    (void)problem;
    zovn_ports_write(ports, true, answer);
    return true;
}

static bool stations(struct zovn_ports *ports, char *line, FILE *answer,
                     struct zovn_problem *problem) {
    uint64_t from = 0;
    const char *word = zovn_word(&line);
    if (word && !zovn_number(word, UINT32_MAX, &from))
        return zovn_refuse(problem, "stations: write the number after next=, or none");
    zovn_stations_write(ports, (uint32_t)from, answer);
    return true;
}

static const struct {
    const char *name;
    bool (*run)(struct zovn_ports *ports, char *line, FILE *answer, struct zovn_problem *problem);
} COMMANDS[] = {
    {"add", add}, {"remove", drop}, {"list", list}, {"status", status}, {"stations", stations}};

bool zovn_command(struct zovn_ports *ports, char *line, FILE *answer) {
    struct zovn_problem problem = {""};
    const char *name = zovn_word(&line);
    bool done = false, quits = name && strcmp(name, "quit") == 0, known = quits;
    for (uint32_t i = 0; name && i < sizeof COMMANDS / sizeof COMMANDS[0]; i++) {
        if (strcmp(COMMANDS[i].name, name) == 0) {
            known = true;
            done = COMMANDS[i].run(ports, line, answer, &problem);
        }
    }
    if (!known)
        zovn_refuse(&problem,
                    "%.32s: no such command; there are add, remove, list, status, stations, quit",
                    name ? name : "an empty line");
    if (done || quits)
        fputs("ok\n", answer);
    else
        fprintf(answer, "error %s\n", problem.text);
    return !quits;
}

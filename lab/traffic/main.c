/* Runs the role of the lab's traffic that the command line selects. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "roles.h"

struct role {
    const char *name;
    void (*run)(const struct options *options);
};

int main(int count, char **words) {
    static const struct role roles[] = {
        {"read-server", serve_reads},
        {"block-reader", read_blocks},
        {"stream-source", send_stream},
        {"stream-sink", sink_streams},
        {"short-flows", send_short_flows},
        {"message-source", send_messages},
        {"message-sink", sink_messages},
        {"ping", ping},
        {"capture", capture},
        {"delay", delay},
        {"wire", wire},
        {"star", star},
    };
    signal(SIGPIPE, SIG_IGN);
    const struct options options = {count - 2, words + 2};
    for (size_t i = 0; count > 1 && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(words[1], roles[i].name) == 0) {
            roles[i].run(&options);
            return 0;
        }
    }
    errno = 0;
    fail("usage: traffic ROLE [--NAME VALUE]...; there is no role %s", count > 1 ? words[1] : "");
}

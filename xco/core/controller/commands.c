// Commands on a Unix socket of packets: access to the socket's file permits commands.
#include "controller/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/engine/engine.h"
#include "controller/shell.h"

// By enum xco_strategy.
static const char *const STRATEGIES[] = {"timeslice", "rate", "hybrid", "gcc"};

static bool failed(char problem[XCO_CONFIG_PROBLEM_BYTES], const char *path) {
    (void)snprintf(problem, XCO_CONFIG_PROBLEM_BYTES, "command %.200s: %s", path, strerror(errno));
    return false;
}

bool xco_command_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    const char *path = shell->node.config.command_path;
    if (path[0] == '\0') {
        return true;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return failed(problem, path);
    }
    memcpy(address.sun_path, path, strlen(path));
    (void)unlink(path); // left by a killed loop; the lease keeps two from running
    shell->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (shell->listener < 0 ||
        bind(shell->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(shell->listener, XCO_CLIENTS_MAX) != 0 || !xco_shell_watch(shell, shell->listener)) {
        return failed(problem, path);
    }
    return true;
}

void xco_command_close(struct xco_shell *shell) {
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        if (shell->clients[i] >= 0) {
            (void)close(shell->clients[i]);
        }
        shell->clients[i] = -1;
    }
    if (shell->listener >= 0) {
        (void)close(shell->listener);
        (void)unlink(shell->node.config.command_path);
    }
    shell->listener = -1;
}

void xco_command_accept(struct xco_shell *shell) {
    const int client = accept4(shell->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
        return; // the client has disconnected again
    }
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        if (shell->clients[i] < 0 && xco_shell_watch(shell, client)) {
            shell->clients[i] = client;
            return;
        }
    }
    (void)close(client);
}

static bool set_strategy(struct xco_shell *shell, const char *name) {
    for (uint8_t i = 0; i < sizeof STRATEGIES / sizeof STRATEGIES[0]; i++) {
        if (strcmp(name, STRATEGIES[i]) == 0) {
            return xco_control_set_strategy(shell->node.core, xco_shell_now(), i);
        }
    }
    return false;
}

static bool raise_epoch(struct xco_shell *shell, const char *text) {
    char *end;
    const uint64_t epoch = strtoull(text, &end, 10);
    return *end == '\0' && xco_node_raise(&shell->node, xco_shell_now(), epoch);
}

// Carries out one command; returns the error, or NULL.
static const char *obey(struct xco_shell *shell, const char *command,
                        char problem[XCO_CONFIG_PROBLEM_BYTES]) {
    if (strcmp(command, "ping") == 0) {
        return NULL;
    }
    if (strcmp(command, "stop") == 0) {
        shell->stopping = true;
        return NULL;
    }
    if (strcmp(command, "reload") == 0) {
        return xco_shell_reload(shell, problem) ? NULL : problem;
    }
    if (strncmp(command, "strategy ", 9) == 0) {
        return set_strategy(shell, command + 9) ? NULL
                                                : "strategies are timeslice, rate, hybrid and gcc";
    }
    if (strncmp(command, "epoch ", 6) == 0) {
        return raise_epoch(shell, command + 6) ? NULL : "a new epoch is higher than the last";
    }
    return "commands are epoch NUMBER, ping, reload, stop and strategy NAME";
}

static void forget(struct xco_shell *shell, int client) {
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        if (shell->clients[i] == client) {
            shell->clients[i] = -1;
        }
    }
    (void)close(client);
}

static bool is_client(const struct xco_shell *shell, int descriptor) {
    for (size_t i = 0; i < XCO_CLIENTS_MAX; i++) {
        if (shell->clients[i] == descriptor) {
            return true;
        }
    }
    return false;
}

bool xco_command_serve(struct xco_shell *shell, int descriptor) {
    if (!is_client(shell, descriptor)) {
        return false;
    }
    char command[256];
    const ssize_t length = recv(descriptor, command, sizeof command - 1, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN) {
        return true; // the event was for the slot's previous client
    }
    if (length <= 0) {
        forget(shell, descriptor);
        return true;
    }
    command[length] = '\0';
    command[strcspn(command, "\n")] = '\0';
    char problem[XCO_CONFIG_PROBLEM_BYTES];
    char answer[XCO_CONFIG_PROBLEM_BYTES + 16];
    const char *why = obey(shell, command, problem);
    const int size = why == NULL ? snprintf(answer, sizeof answer, "ok")
                                 : snprintf(answer, sizeof answer, "error: %s", why);
    if (send(descriptor, answer, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        forget(shell, descriptor);
    }
    return true;
}

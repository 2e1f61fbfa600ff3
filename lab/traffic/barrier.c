/* Barrier reads: servers that answer, and a client that reads blocks striped over them. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"

#define CLIENTS_MAX 64
#define SERVERS_MAX 256
#define CHUNK 65536

struct client {
    uint32_t request;
    size_t request_bytes;
    uint32_t left;
};

struct server {
    size_t clients;
    struct pollfd polls[2 + CLIENTS_MAX]; /* the orders, the listener, the clients */
    struct client states[CLIENTS_MAX];
    uint64_t requests, bytes;
    char data[CHUNK];
};

static void write_server(void *role) {
    const struct server *server = role;
    printf(",\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64, server->requests, server->bytes);
}

static void accept_client(struct server *server) {
    int fd = accept4(server->polls[1].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return; /* it has disconnected again */
    }
    if (server->clients == CLIENTS_MAX) {
        errno = 0;
        fail("more than %d clients", CLIENTS_MAX);
    }
    server->states[server->clients] = (struct client){0};
    server->polls[2 + server->clients++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void drop_client(struct server *server, size_t index) {
    close(server->polls[2 + index].fd);
    server->clients--;
    server->states[index] = server->states[server->clients];
    server->polls[2 + index] = server->polls[2 + server->clients];
}

/* Read the available part of a request; return false if the client is gone. */
static bool take_request(struct server *server, struct client *client, int fd) {
    char *into = (char *)&client->request + client->request_bytes;
    ssize_t length = recv(fd, into, sizeof client->request - client->request_bytes, 0);
    if (length <= 0) {
        return length < 0 && errno == EAGAIN;
    }
    client->request_bytes += (size_t)length;
    if (client->request_bytes == sizeof client->request) {
        client->left = ntohl(client->request);
        client->request_bytes = 0;
        server->requests++;
    }
    return true;
}

/* Send what the client's socket accepts; return false if the client is gone. */
static bool answer(struct server *server, struct client *client, int fd) {
    while (client->left > 0) {
        ssize_t length = send(fd, server->data, client->left < CHUNK ? client->left : CHUNK, 0);
        if (length < 0) {
            return errno == EAGAIN;
        }
        client->left -= (uint32_t)length;
        server->bytes += (uint64_t)length;
    }
    return true;
}

static bool serve(struct server *server, size_t index) {
    struct pollfd *poll_of = &server->polls[2 + index];
    struct client *client = &server->states[index];
    bool lives = client->left > 0 || take_request(server, client, poll_of->fd);
    lives = lives && answer(server, client, poll_of->fd);
    poll_of->events = client->left > 0 ? POLLOUT : POLLIN;
    return lives;
}

void serve_reads(const struct options *options) {
    struct server *server = allocate(1, sizeof *server);
    server->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    int listener = tcp_listen(option_end(options, "--bind", "0.0.0.0"));
    set_congestion(listener, option_text(options, "--congestion", "cubic"));
    server->polls[1] = (struct pollfd){.fd = listener, .events = POLLIN};
    say_ready();
    do {
        for (size_t i = server->clients; i-- > 0;) { /* dropping moves the last one here */
            if (server->polls[2 + i].revents != 0 && !serve(server, i)) {
                drop_client(server, i);
            }
        }
        if (server->polls[1].revents != 0) {
            accept_client(server);
        }
        if (poll(server->polls, 2 + server->clients, -1) < 0) {
            fail("poll");
        }
    } while (server->polls[0].revents == 0 || obey(write_server, server));
    free(server);
}

struct reader {
    size_t servers, waiting;
    struct pollfd polls[1 + SERVERS_MAX]; /* the orders, the servers */
    uint32_t left[SERVERS_MAX];
    uint32_t stripe;
    uint64_t begun_ns, blocks, bytes;
    struct samples block_ns;
};

static void write_reader(void *role) {
    struct reader *reader = role;
    printf(",\"blocks\":%" PRIu64 ",\"bytes\":%" PRIu64, reader->blocks, reader->bytes);
    samples_write(&reader->block_ns, "block_ns");
}

static void connect_servers(struct reader *reader, const struct options *options) {
    char *addresses = strdup(option_needed(options, "--to"));
    struct sockaddr_in here = option_end(options, "--bind", "0.0.0.0");
    char *rest = NULL;
    for (char *one = strtok_r(addresses, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        if (reader->servers == SERVERS_MAX) {
            errno = 0;
            fail("more than %d servers", SERVERS_MAX);
        }
        char *words[] = {"--to", one, "--port", (char *)option_needed(options, "--port")};
        struct options end = {4, words};
        int fd = tcp_connect(here, option_end(&end, "--to", NULL));
        reader->polls[++reader->servers] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    free(addresses);
}

static void begin_block(struct reader *reader) {
    const uint32_t request = htonl(reader->stripe);
    reader->begun_ns = now_ns();
    reader->waiting = reader->servers;
    for (size_t i = 0; i < reader->servers; i++) {
        reader->left[i] = reader->stripe;
        if (send(reader->polls[1 + i].fd, &request, sizeof request, 0) != sizeof request) {
            fail("server %zu is gone", i);
        }
    }
}

static void take_stripe(struct reader *reader, size_t index) {
    /* MSG_TRUNC discards the data without copying it (tcp(7)). */
    ssize_t length = recv(reader->polls[1 + index].fd, NULL, reader->left[index], MSG_TRUNC);
    if (length == 0 || (length < 0 && errno != EAGAIN)) {
        fail("server %zu is gone", index);
    }
    if (length > 0) {
        reader->bytes += (uint64_t)length;
        reader->left[index] -= (uint32_t)length;
        reader->waiting -= reader->left[index] == 0;
    }
}

static void take_all(struct reader *reader) {
    for (size_t i = 0; i < reader->servers; i++) {
        if (reader->polls[1 + i].revents != 0) { /* with nothing left to read, it is the end */
            take_stripe(reader, i);
        }
    }
    if (reader->waiting == 0) {
        samples_add(&reader->block_ns, now_ns() - reader->begun_ns);
        reader->blocks++;
        begin_block(reader);
    }
}

void read_blocks(const struct options *options) {
    struct reader *reader = allocate(1, sizeof *reader);
    reader->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    connect_servers(reader, options);
    reader->stripe = (uint32_t)(option_number(options, "--block", 1000000) / reader->servers);
    if (reader->stripe == 0) {
        errno = 0;
        fail("--block is smaller than the number of servers");
    }
    say_ready();
    begin_block(reader);
    do {
        if (poll(reader->polls, 1 + reader->servers, -1) < 0) {
            fail("poll");
        }
        take_all(reader);
    } while (reader->polls[0].revents == 0 || obey(write_reader, reader));
    free(reader);
}

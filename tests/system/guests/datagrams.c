/* A sender and a reader of numbered datagrams, for guests.
 *
 *   datagrams flood ADDRESS FRAMES   sends, and waits where the kernel has no room
 *   datagrams sink PAUSE_US BYTES    reads until SIGTERM, with a pause after each and a receive
 *                                    buffer of BYTES; then reads the rest, and says what came */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000, WORDS = 16, MOST = 1 << 20 };

static volatile sig_atomic_t ended;

static void end(int number) {
    (void)number;
    ended = 1;
}

static int flood(const char *address, uint32_t frames) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    uint32_t words[WORDS] = {0};
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, address, &to.sin_addr);
    for (; words[0] < frames; words[0]++)
        if (sendto(file, words, sizeof words, 0, (struct sockaddr *)&to, sizeof to) < 0)
            return perror("sendto"), 1;
    return 0;
}

static int open_sink(int bytes) {
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const struct sigaction action = {.sa_handler = end}; /* without SA_RESTART: recv returns */
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    sigaction(SIGTERM, &action, NULL);
    setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    return bind(file, (const struct sockaddr *)&any, sizeof any) < 0 ? -1 : file;
}

static int sink(useconds_t pause_us, int bytes) {
    static uint8_t seen[MOST];
    uint32_t words[WORDS], received = 0, repeated = 0, overtaken = 0, next = 0;
    int file = open_sink(bytes);
    if (file < 0)
        return perror("bind"), 1;
    for (;;) {
        ssize_t got = recv(file, words, sizeof words, ended ? MSG_DONTWAIT : 0);
        if (got < 0 && ended && errno != EINTR)
            break;
        if (got < (ssize_t)sizeof words || words[0] >= MOST)
            continue;
        received++;
        repeated += seen[words[0]]++ > 0;
        overtaken += words[0] < next;
        next = words[0] + 1;
        if (pause_us && !ended)
            usleep(pause_us);
    }
    printf("received %u\nrepeated %u\novertaken %u\n", received, repeated, overtaken);
    return 0;
}

int main(int count, char **words) {
    if (count == 4 && !strcmp(words[1], "flood"))
        return flood(words[2], (uint32_t)atol(words[3]));
    if (count == 4 && !strcmp(words[1], "sink"))
        return sink((useconds_t)atol(words[2]), atoi(words[3]));
    fputs("datagrams flood ADDRESS FRAMES | datagrams sink PAUSE_US BYTES\n", stderr);
    return 2;
}

/* flood ADDRESS RATE: sends 18-byte UDP datagrams at RATE packets/s until it is killed. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { PORT = 9, TICK_NS = 5000000, MAX_BURST = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (!inet_aton(argv[1], &to.sin_addr))
        return 2;
    double rate = atof(argv[2]), start = now();
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0)
        return 1;
    for (long long sent = 0;;) {
        long long due = (long long)((now() - start) * rate) - sent;
        /* What was missed while this process did not run is not made up for: no long bursts. */
        if (due > MAX_BURST)
            sent += due - MAX_BURST, due = MAX_BURST;
        for (; due > 0; due--, sent++)
            /* A datagram that finds no guest is lost, as it would be on a wire. */
            (void)!sendto(fd, "eighteen bytes....", 18, 0, (struct sockaddr *)&to, sizeof to);
        nanosleep(&(struct timespec){0, TICK_NS}, NULL);
    }
}

/* Turns with other processes on one CPU: who has the token runs, the others sleep in read().
 *
 * sched_yield() would do on an idle machine. On a busy one the kernel makes those that yield wait
 * for all others, for milliseconds. */
#include <unistd.h>

#include "tools/generator.h"

void generator_await_turn(struct generator_turns *turns) {
    char token;
    if (turns->from >= 0 && read(turns->from, &token, sizeof token) != sizeof token)
        turns->from = -1; /* the one before has ended: it is always this one's turn */
}

void generator_pass_turn(struct generator_turns *turns) {
    const char token = 0;
    if (turns->to >= 0 && write(turns->to, &token, sizeof token) != sizeof token)
        turns->to = -1;
}

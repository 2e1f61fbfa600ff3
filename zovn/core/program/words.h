/* Lines of words, as the configuration and the control socket have them: `key value` or `key=value`. */
#ifndef ZOVN_PROGRAM_WORDS_H
#define ZOVN_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZOVN_PROBLEM_BYTES = 256 };

/* Why a line cannot be used. */
struct zovn_problem {
    char text[ZOVN_PROBLEM_BYTES];
};

/* Note a problem; return false. */
bool zovn_refuse(struct zovn_problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Cut the next word off a line; return NULL at its end. */
char *zovn_word(char **line);

/* Cut a word at its first `=`; return what follows it, or NULL if there is none. */
char *zovn_value(char *word);

/* Read a whole decimal number of at most `most`. */
bool zovn_number(const char *text, uint64_t most, uint64_t *number);

/* Read an Ethernet address of one station: six bytes in hexadecimal with colons between them. */
bool zovn_station(const char *text, uint8_t address[6]);

/* Read VLANs such as 10,20-29 into bits. */
bool zovn_vlans(char *text, uint64_t vlans[64]);

#endif

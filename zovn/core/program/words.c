/* Splits lines into words, and reads numbers, addresses and VLANs. */
#include "program/words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switch/settings.h"

bool zovn_refuse(struct zovn_problem *problem, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(problem->text, sizeof problem->text, format, values);
    va_end(values);
    return false;
}

char *zovn_word(char **line) {
    char *word = *line + strspn(*line, " \t\r\n");
    if (!*word)
        return NULL;
    char *end = word + strcspn(word, " \t\r\n");
    *line = *end ? end + 1 : end;
    *end = 0;
    return word;
}

char *zovn_value(char *word) {
    char *sign = strchr(word, '=');
    if (!sign)
        return NULL;
    *sign = 0;
    return sign + 1;
}

bool zovn_number(const char *text, uint64_t most, uint64_t *number) {
    *number = 0;
    if (!*text)
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (*number > (most - digit) / 10 || digit > most)
            return false;
        *number = *number * 10 + digit;
    }
    return !*text;
}

static bool byte_at(const char *text, uint8_t *byte) {
    if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
        return false;
    const char pair[] = {text[0], text[1], 0};
    *byte = (uint8_t)strtoul(pair, NULL, 16);
    return true;
}

bool zovn_station(const char *text, uint8_t address[6]) {
    static const uint8_t ZERO[6];
    if (strlen(text) != 17)
        return false;
    for (uint32_t i = 0; i < 6; i++)
        if (!byte_at(text + 3 * i, &address[i]) || (i < 5 && text[3 * i + 2] != ':'))
            return false;
    return !(address[0] & 1) && memcmp(address, ZERO, 6) != 0;
}

static bool range(char *text, uint64_t vlans[64]) {
    uint64_t first, last;
    char *dash = strchr(text, '-');
    if (dash)
        *dash = 0;
    if (!zovn_number(text, ZOVN_MOST_VLAN, &first) ||
        !zovn_number(dash ? dash + 1 : text, ZOVN_MOST_VLAN, &last) || !first || first > last)
        return false;
    for (; first <= last; first++)
        vlans[first / 64] |= UINT64_C(1) << first % 64;
    return true;
}

bool zovn_vlans(char *text, uint64_t vlans[64]) {
    for (;;) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma = 0;
        if (!range(text, vlans))
            return false;
        if (!comma)
            return true;
        text = comma + 1;
    }
}

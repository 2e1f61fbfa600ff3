/* A port as words: name=a kind=vhost path=/run/zovn/a.sock vlan=1 ..., or name=b kind=veth interface=p1 ... */
#ifndef ZOVN_PROGRAM_PORT_WORDS_H
#define ZOVN_PROGRAM_PORT_WORDS_H

#include "program/kinds.h"
#include "program/words.h"

/* Read a port; return false with the problem. The line is cut into words. */
bool zovn_port_words(char *line, struct zovn_port_options *options, const struct zovn_kind **kind,
                     struct zovn_problem *problem);

#endif

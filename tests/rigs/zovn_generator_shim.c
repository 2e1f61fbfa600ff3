/* What the generator makes of received frames, behind a plain function for tests by ctypes. */
#include "tools/generator.h"

#include <string.h>

enum { SINK = 3, SOURCE = 7 };

/* Frames with these numbers arrive one after the other; found: received, repeated, overtaken. */
void shim_receive(const uint64_t *numbers, uint32_t count, uint64_t found[3]) {
    static struct generator_station station;
    uint8_t frame[GENERATOR_BYTES];
    memset(&station, 0, sizeof station);
    station.number = SINK;
    for (uint32_t i = 0; i < count; i++) {
        generator_write(frame, SOURCE, SINK, numbers[i]);
        generator_count(&station, frame, sizeof frame);
        generator_write(frame, SOURCE, SINK + 1, numbers[i]);
        generator_count(&station, frame, sizeof frame); /* flooded: for another one */
    }
    found[0] = station.from[SOURCE].received;
    found[1] = station.from[SOURCE].repeated;
    found[2] = station.from[SOURCE].overtaken;
}

/* A ring of entries with one producer and one consumer. */
#include "switch/channel.h"

#include <stdatomic.h>
#include <stdlib.h>

static uint32_t places_for(uint32_t references) {
    uint32_t places = 1;
    while (places < references)
        places *= 2;
    return places;
}

struct zovn_channel *zovn_channels_new(uint32_t count, uint32_t references) {
    struct zovn_channel *channels = aligned_alloc(ZOVN_LINE, count * sizeof *channels);
    const uint32_t places = places_for(references);
    bool whole = channels;
    for (uint32_t i = 0; channels && i < count; i++) {
        channels[i] =
            (struct zovn_channel){.all = calloc(places, sizeof *channels->all), .mask = places - 1};
        whole &= channels[i].all != NULL;
    }
    if (whole)
        return channels;
    zovn_channels_free(channels, count);
    return NULL;
}

void zovn_channels_free(struct zovn_channel *channels, uint32_t count) {
    for (uint32_t i = 0; channels && i < count; i++)
        free(channels[i].all);
    free(channels);
}

void zovn_channel_put(struct zovn_channel *channel, struct zovn_passed passed) {
    channel->all[channel->put++ & channel->mask] = passed;
}

bool zovn_channel_show(struct zovn_channel *channel) {
    if (channel->put == atomic_load_explicit(&channel->shown, memory_order_relaxed))
        return false;
    atomic_store_explicit(&channel->shown, channel->put, memory_order_release);
    return true;
}

bool zovn_channel_take(struct zovn_channel *channel, struct zovn_passed *passed) {
    if (channel->taken == atomic_load_explicit(&channel->shown, memory_order_acquire))
        return false;
    *passed = channel->all[channel->taken++ & channel->mask];
    return true;
}

/* Takes the log from librte_vhost, which maps it. */
#include "vhost/dirty.h"

#include <linux/vhost_types.h>
#include <stddef.h>

#include <rte_vhost.h>

#include "vhost/features.h"
#include "vhost/guard.h"

struct zovn_dirty_log zovn_dirty_find(const struct zovn_dirty *dirty, int device) {
    struct zovn_dirty_log none = {0};
    uint64_t features, base, bytes;
    if (!dirty->known || rte_vhost_get_negotiated_features(device, &features) < 0 ||
        !zovn_vhost_has(features, VHOST_F_LOG_ALL) ||
        rte_vhost_get_log_base(device, &base, &bytes) < 0)
        return none;
    return (struct zovn_dirty_log){(uint8_t *)base, bytes};
}

/* A log that cannot be guarded is not written: the front end then copies too little. So it must fit,
 * and does: there is one for each port. */
void zovn_dirty_use(struct zovn_dirty *dirty, struct zovn_memory *memory,
                    const struct zovn_dirty_log *log) {
    zovn_guard_drop(&dirty->lost);
    bool guarded = log->bits && zovn_guard_add(log->bits, log->bytes, &dirty->lost);
    memory->log = guarded ? log->bits : NULL;
    memory->log_bytes = guarded ? log->bytes : 0;
}

/* The kernel's poller of an interface's receive queue (NAPI), by its netdev family of netlink. */
#include "veth/napi.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <linux/genetlink.h>

#include "veth/netlink.h"

/* Of linux/netdev.h, which distributions' headers lack or have without `NAPI_SET`. */
enum { FAMILY_VERSION = 1, NAPI_GET = 11, NAPI_SET = 14 };
enum { NAPI_INTERFACE = 1, NAPI_ID = 2, NAPI_DEFER_HARD_IRQS = 5, NAPI_GRO_FLUSH_TIMEOUT = 6 };

static void begin(struct zovn_request *request, uint16_t family, uint8_t command, uint16_t flags) {
    struct genlmsghdr header = {.cmd = command, .version = FAMILY_VERSION};
    zovn_request_begin(request, family, flags, &header, sizeof header);
}

static void note_family(const struct nlmsghdr *message, void *context) {
    const void *value = zovn_attribute(message, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID, sizeof(uint16_t));
    if (value)
        memcpy(context, value, sizeof(uint16_t));
}

int zovn_napi_open(struct zovn_napi_control *control) {
    static const char NAME[] = "netdev";
    control->netlink = zovn_netlink_open(NETLINK_GENERIC, 0);
    if (control->netlink < 0)
        return control->netlink;
    struct zovn_request request;
    begin(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
    zovn_request_add(&request, CTRL_ATTR_FAMILY_NAME, NAME, sizeof NAME);
    int error = zovn_request_send(control->netlink, &request, note_family, &control->family);
    if (error)
        zovn_napi_close(control);
    return error;
}

void zovn_napi_close(struct zovn_napi_control *control) {
    if (control->netlink >= 0)
        close(control->netlink);
    control->netlink = -1;
}

struct found {
    uint32_t count, id;
};

static void note_napi(const struct nlmsghdr *message, void *context) {
    struct found *found = context;
    const void *value = zovn_attribute(message, GENL_HDRLEN, NAPI_ID, sizeof found->id);
    if (!value)
        return;
    memcpy(&found->id, value, sizeof found->id);
    found->count++;
}

int64_t zovn_napi_find(const struct zovn_napi_control *control, uint32_t interface) {
    struct zovn_request request;
    struct found found = {0};
    begin(&request, control->family, NAPI_GET, NLM_F_DUMP);
    zovn_request_add(&request, NAPI_INTERFACE, &interface, sizeof interface);
    int error = zovn_request_send(control->netlink, &request, note_napi, &found);
    if (error)
        return error;
    return found.count > 1 ? -E2BIG : (int64_t)found.id;
}

int zovn_napi_own(const struct zovn_napi_control *control, uint32_t napi, uint64_t rest_ns) {
    uint32_t defer = rest_ns ? INT32_MAX : 0;
    struct zovn_request request;
    begin(&request, control->family, NAPI_SET, NLM_F_ACK);
    zovn_request_add(&request, NAPI_ID, &napi, sizeof napi);
    zovn_request_add(&request, NAPI_DEFER_HARD_IRQS, &defer, sizeof defer);
    zovn_request_add(&request, NAPI_GRO_FLUSH_TIMEOUT, &rest_ns, sizeof rest_ns);
    return zovn_request_send(control->netlink, &request, NULL, NULL);
}

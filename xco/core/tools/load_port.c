// The port before a simulated host: counters of a busy link of 1 Gb/s, drawn by chance.
#include "tools/load_port.h"

#include "tools/load_random.h"

#define MS 1000000u
#define BITS_A_NS 1u
#define PACKET_BYTES 1500u
#define FOREIGN_MOST 300u // permille
#define STANDING_ONE_IN 50u
#define STANDING_PERIODS 5u

static void redraw(struct xco_load_port *port, uint64_t now_ns, uint64_t *random) {
    if (now_ns >= port->redraw_ns) {
        port->foreign_permille = xco_load_draw(random, FOREIGN_MOST + 1);
        port->redraw_ns = now_ns + 100 * MS + xco_load_draw(random, 200 * MS);
    }
    if (port->standing > 0) {
        port->standing--;
    } else if (xco_load_draw(random, STANDING_ONE_IN) == 0) {
        port->standing = STANDING_PERIODS;
    }
}

void xco_load_port_pass(struct xco_load_port *port, uint64_t now_ns, uint64_t *random) {
    struct xco_port *counts = &port->counts;
    const uint64_t elapsed_ns = counts->read_ns == 0 ? 0 : now_ns - counts->read_ns;
    redraw(port, now_ns, random);
    const uint64_t full_permille = 970 + xco_load_draw(random, 31);
    const uint64_t bytes = elapsed_ns * BITS_A_NS * full_permille / 8000;
    const uint64_t packets = bytes / PACKET_BYTES;
    counts->read_ns = now_ns;
    counts->bytes += bytes;
    counts->coordinated_bytes += bytes * (1000 - port->foreign_permille) / 1000;
    counts->packets += packets;
    counts->marks += port->standing > 0 ? packets * 4 / 5 : packets / 20;
}

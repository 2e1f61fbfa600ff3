// Which hosts have room for a promise, and where routers go when hosts are lost; pure.
//
// The same as `policer fit` and `policer what-if`: the fullest host that has room comes first.

const EXACT = 1e-9;

/** Return hosts that something can be moved to; no simulated one beside real ones. */
export function roomsOf(hosts) {
  const real = hosts.filter(({ live }) => !live.simulated);
  const counted = real.length > 0 ? real : hosts;
  return counted.filter(({ live }) => trusted(live)).map(roomOf);
}

const trusted = (live) =>
  live.reachable && !live.suspension && !live.distrust && !live.link_problem && !live.refused;

function roomOf({ entry, live }) {
  const { name: host, capacity_pps: capacity } = entry;
  return { host, capacity, promised: live.promised_pps };
}

export const free = ({ capacity, promised }) => capacity - promised;

const takes = (room, pps) => room.promised + pps <= room.capacity * (1 + EXACT);

const byName = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Return the hosts that can take a guarantee, in packets/s at its cost, the fullest first. */
export function fitting(rooms, pps) {
  const order = (a, b) => free(a) - free(b) || byName(a.host, b.host);
  return rooms.filter((room) => takes(room, pps)).sort(order);
}

/** Return {host, vr, pps}: what a contract takes where its router is, by terms that hold now. */
export function guaranteed({ host, seen_on: seen, vr, terms, contract }) {
  const { guarantee_pps: pps, guarantee_bps: bps, packet_bytes: size, cost } = terms ?? contract;
  return { host: host ?? seen ?? "", vr, pps: cost * (pps || (bps ?? 0) / (8 * size)) };
}

/**
 * Return a place for each guaranteed router of hosts that are lost, {host, vr, pps, target}.
 *
 * The largest guarantee goes first; the target is null where no host that is left has room.
 */
export function moved(rooms, routers, lost) {
  const left = rooms.filter(({ host }) => !lost.has(host)).map((room) => ({ ...room }));
  const homeless = routers.filter(({ host, pps }) => lost.has(host) && pps > 0);
  const order = (a, b) => b.pps - a.pps || byName(a.host, b.host) || byName(a.vr, b.vr);
  return homeless.sort(order).map((one) => ({ ...one, target: settled(left, one.pps) }));
}

function settled(left, pps) {
  const best = fitting(left, pps)[0];
  if (!best) return null;
  best.promised += pps;
  return best.host;
}

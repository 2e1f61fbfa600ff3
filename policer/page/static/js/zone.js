// Instants as people read them: in UTC or in local time, always with the zone written.

const KEY = "policer-zone";

/** Tells of "changed": times are to be shown in another zone. */
export const zones = new EventTarget();

/** Return "utc" or "local", as it was chosen in this browser. */
export const zone = () => (localStorage.getItem(KEY) === "utc" ? "utc" : "local");

/** Show times in "utc" or "local", now and at later visits. */
export function chooseZone(wanted) {
  localStorage.setItem(KEY, wanted);
  zones.dispatchEvent(new Event("changed"));
}

const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" };
const DAY = { year: "numeric", month: "2-digit", day: "2-digit" };

function parts(at, wanted) {
  const timeZone = zone() === "utc" ? "UTC" : undefined;
  const found = new Intl.DateTimeFormat("en-GB", { ...wanted, timeZone }).formatToParts(at);
  return Object.fromEntries(found.map(({ type, value }) => [type, value]));
}

/** Return an instant with its day and its zone: "2026-07-01 12:01:03 CEST". */
export function stamp(iso) {
  const { year, month, day, ...rest } = parts(new Date(iso), {
    ...DAY,
    ...TIME,
    second: "2-digit",
  });
  return `${year}-${month}-${day} ${timed(rest)} ${rest.timeZoneName}`;
}

/** Return the time of day of milliseconds with its zone: "12:01:03 CEST". */
export function timeOfDay(ms) {
  const found = parts(new Date(ms), { ...TIME, second: "2-digit" });
  return `${timed(found)} ${found.timeZoneName}`;
}

/** Return the time of day without its zone, for an axis that has the zone as its label. */
export function tick(ms, { seconds }) {
  return timed(parts(new Date(ms), { ...TIME, ...(seconds && { second: "2-digit" }) }));
}

const timed = ({ hour, minute, second }) => [hour, minute, second].filter(Boolean).join(":");

/** Return the zone's name at this moment, such as "UTC" or "CEST". */
export const zoneName = () => parts(new Date(), TIME).timeZoneName;

/** Have a list to choose from choose the zone. */
export function wireZone(select) {
  select.value = zone();
  select.addEventListener("change", () => chooseZone(select.value));
}

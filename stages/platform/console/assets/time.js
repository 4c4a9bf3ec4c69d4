// Times: the server writes UTC, the reader sees their own zone.

// So far the browser's clock is behind the server's.
let ahead = 0;

function ago(at) {
  const seconds = Math.max(0, Math.floor((Date.now() + ahead - at) / 1000));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// At the end of a sentence "6 s" is "6 s ago"; "now" stays.
function told(text, word) {
  return word && /\d/.test(text) ? `${text} ${word}` : text;
}

const format = (how) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...how });
const hours = { hour: "2-digit", minute: "2-digit" };
const date = { day: "numeric", month: "short", ...hours };
const minute = format({ weekday: "short", ...date });
const year = format({ year: "numeric", ...date });
const second = format({ dateStyle: "full", timeStyle: "long" });
const clock = format(hours);

const dated = format({ timeZoneName: "short" });
// Summer has another than winter.
const zone = (at) => dated.formatToParts(at).find(({ type }) => type === "timeZoneName").value;

export function tell(root) {
  for (const time of root.querySelectorAll("time")) {
    const at = Date.parse(time.dateTime);
    const isToday = new Date(at).toDateString() === new Date().toDateString();
    const text = "ago" in time.dataset ? told(ago(at), time.dataset.ago) : "clock" in time.dataset && isToday ? clock.format(at) : moment(at);
    if (time.textContent !== text) time.textContent = text;
    time.title = second.format(at);
  }
  for (const hour of root.querySelectorAll("[data-hour]")) hour.textContent = clock.format(Number(hour.dataset.hour));
  for (const one of root.querySelectorAll("[data-zone]")) one.textContent = zone(Number(one.dataset.zone));
  for (const handle of root.querySelectorAll("[data-handle]")) handle.setAttribute("aria-valuetext", moment(Number(handle.getAttribute("aria-valuenow"))));
}

export function sync(now) {
  const was = ahead;
  ahead = now - Date.now() || 0;
  if (Math.abs(ahead - was) > 1000) tell(document);
}

export function moment(at) {
  return (new Date(at).getFullYear() === new Date().getFullYear() ? minute : year).format(at);
}

export function start() {
  tell(document);
  setInterval(() => { if (!document.hidden) tell(document); }, 5000);
}

// One stream tells what changed, which is read again: soon where it is shown, later where it may come to be. A hidden page asks
// nothing.
import { given, refresh, signedOut, signIn } from "./swap.js";
import { moment, sync } from "./time.js";

const SOON = 500;
const LATER = 2000;
// What time alone changes is told by nobody: that a runtime is silent, above all.
const AT_LEAST_EVERY = 60_000;
let heard = Date.now();
let lost = null;
let out = false;
let source;
let begun = 0;
// Errors since it said hello, and the last event that it told.
let errors = 0;
let after = "";
// So long after the last time; not at all where it is infinite.
let due = Infinity;
let last = 0;
let took = 0;
let busy = false;
// When what is shown was read.
let read = Date.now();

// When what failed is tried again: later each time, by half a minute at most, and not by all pages at once.
function backOff() {
  let times = 0;
  return {
    at: 0,
    failed() { this.at = Date.now() + Math.min(LATER * 2 ** times++, 30_000) * (1 + Math.random()) / 2; },
    over() { times = this.at = 0; },
  };
}
const [page, stream, added] = [backOff(), backOff(), backOff()];

function tell() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const quiet = Math.floor((Date.now() - heard) / 1000);
  // What counts up is not read aloud.
  const [state, count, text] = out ? ["offline", "", ""] : lost ? ["offline", "", `offline since ${moment(lost)}`] : quiet > 8 ? ["behind", `${quiet} s `, "behind"] : ["live", "", "live"];
  live.dataset.state = state;
  const [number, word, link] = live.children;
  if (number.textContent !== count) number.textContent = count;
  if (word.textContent !== text) word.textContent = text;
  if (out) link.href = signIn();
  if (link.hidden === out) link.hidden = !out;
}

function shows(key) {
  const path = CSS.escape(key.split("/").map(encodeURIComponent).join("/"));
  if (document.querySelector(`main [data-key="${path}"], main [data-application="${path}"]`)) return SOON;
  return ["/", "/applications", "/deployments", "/runtimes"].includes(location.pathname) ? LATER : Infinity;
}

const later = () => { due = Math.min(due, LATER); };

async function work() {
  if (due === Infinity || busy || document.hidden) return;
  const rest = Math.max(last + Math.max(due, 4 * took), page.at) - Date.now();
  clearTimeout(work.timer);
  if (rest > 0) {
    work.timer = setTimeout(work, rest);
    return;
  }
  due = Infinity;
  last = Date.now();
  // What is shown once is not there to be read again.
  if (document.querySelector("[data-once]")) return;
  // Neither a field that somebody types in nor an answer that was asked for is taken away.
  if (document.activeElement?.closest("[data-kept], input[type=text]:not([data-filter] *)")) return void (due = LATER);
  if (new URLSearchParams(location.search).has("to")) return;
  busy = true;
  const asked = Date.now();
  const isRead = await refresh().catch(() => page.failed());
  if (isRead) {
    read = asked;
    took = Date.now() - asked;
    page.over();
  } else later();
  busy = false;
  work();
}

// The stream tells nothing of a runtime that has not reported yet.
async function wait() {
  const part = document.querySelector("[data-wait]");
  if (!part || wait.goes || document.hidden || Date.now() < added.at) return;
  wait.goes = true;
  const came = await given(part.dataset.wait);
  wait.goes = false;
  if (!came) return added.failed();
  added.over();
  const fresh = came.getElementById(part.id);
  if (fresh && fresh.outerHTML !== part.outerHTML) part.replaceWith(fresh);
}

// Begun anew, it tells what came since; where it told nothing yet, the page is read `again`.
function listen(again) {
  source = new EventSource(after ? `/live?after=${after}` : "/live");
  begun = Date.now();
  const on = (name, what) => source.addEventListener(name, (event) => {
    [heard, lost, out, after] = [Date.now(), null, false, event.lastEventId];
    tell();
    what(event);
    work();
  });
  on("hello", ({ data }) => {
    sync(data);
    errors = 0;
    stream.over();
    page.over();
    if (again) later();
  });
  on("beat", ({ data }) => { sync(data); if (Date.now() - read >= AT_LEAST_EVERY) later(); });
  on("changed", ({ data }) => { due = Math.min(due, ...JSON.parse(data).map(shows)); });
  on("resync", later);
  source.addEventListener("error", async ({ target }) => {
    lost ??= Date.now();
    tell();
    // The browser would try it for ever where it is refused.
    if (errors++) target.close();
    if (target.readyState === EventSource.CLOSED) stream.failed();
    out = await signedOut();
    tell();
  });
}

function tick() {
  tell();
  // A connection that is lost unnoticed stays open, without the beat of every 5 s.
  if (Date.now() - Math.max(heard, begun) > 30_000) source.close();
  // A browser begins a stream anew itself, but not after no answer.
  if (source.readyState === EventSource.CLOSED && Date.now() >= stream.at && !document.hidden) listen(!after);
  work();
}

// Whoever looks again waits for nothing.
function wake() {
  if (document.hidden) return source.close();
  for (const one of [page, stream, added]) one.over();
  last = 0;
  if (source.readyState !== EventSource.OPEN) source.close();
  tick();
}

export function start() {
  listen(false);
  if (document.hidden) wake();
  setInterval(tick, 1000);
  setInterval(wait, 2000);
  document.addEventListener("visibilitychange", wake);
  addEventListener("online", wake);
  document.addEventListener("shown", () => { read = Date.now(); });
  addEventListener("pagehide", () => source.close());
}

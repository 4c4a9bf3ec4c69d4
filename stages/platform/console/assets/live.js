// One stream tells what changed; what is shown of that is read again, at most every two seconds. A hidden page asks nothing.
import { refresh } from "./swap.js";
import { moment } from "./time.js";

let heard = Date.now();
let lost = null;
let due = false;
let last = 0;

function tell() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const quiet = Math.floor((Date.now() - heard) / 1000);
  const [state, text] = lost ? ["offline", `offline since ${moment(lost)}`] : quiet > 8 ? ["behind", `${quiet} s behind`] : ["live", "live"];
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

function shows(key) {
  const [runtime] = key.split("/");
  const path = key.split("/").map(encodeURIComponent).join("/");
  const main = document.querySelector("main");
  return ["/", "/applications", "/deployments", "/runtimes"].includes(location.pathname)
    || main.querySelector(`[data-application="${CSS.escape(path)}"], [data-wait="runtime/${CSS.escape(runtime)}"]`);
}

async function work() {
  if (!due || document.hidden || Date.now() - last < 2000) return;
  due = false;
  last = Date.now();
  const waits = document.querySelector("[data-wait]");
  if (waits) {
    waits.textContent = "● It reports.";
    waits.removeAttribute("data-wait");
    return;
  }
  // Neither a field that somebody types in nor an answer that was asked for is taken away.
  if (document.activeElement?.matches("input[type=text]") && !document.activeElement.closest("[data-filter]")) return;
  if (new URLSearchParams(location.search).has("to")) return;
  await refresh().catch(() => { due = true; });
}

export function start() {
  const source = new EventSource("/live");
  const alive = () => {
    heard = Date.now();
    lost = null;
    tell();
  };
  source.addEventListener("hello", alive);
  source.addEventListener("beat", alive);
  source.addEventListener("changed", (event) => {
    alive();
    if (JSON.parse(event.data).some(shows)) due = true;
    work();
  });
  source.addEventListener("resync", () => {
    alive();
    due = true;
    work();
  });
  source.addEventListener("error", () => {
    lost ??= Date.now();
    tell();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { source.close(); start(); }, 5000);
  });
  clearInterval(start.timer);
  start.timer = setInterval(() => { tell(); work(); }, 1000);
  document.addEventListener("visibilitychange", work);
  // A page that the browser keeps for going back holds no connection.
  addEventListener("pagehide", () => source.close(), { once: true });
}

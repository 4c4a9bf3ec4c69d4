// The two handles of an application's life: dragged, or moved by the arrow keys.
import { go } from "./swap.js";
import { moment } from "./time.js";

const number = (strip, name) => Number(strip.dataset[name]);

const edges = (strip) => ["begin", "end", "left", "right"].map((name) => number(strip, name));
const within = (share) => Math.min(Math.max(share, 0), 1);

function place(strip, at) {
  const [begin, end, left, right] = edges(strip);
  return left + within((at - begin) / (end - begin)) * (right - left);
}

function draw(strip, handle, at) {
  const x = place(strip, at);
  const line = handle.querySelector("line");
  for (const end of ["x1", "x2"]) line.setAttribute(end, x);
  handle.querySelector(".grip").setAttribute("x", x - 8);
  handle.setAttribute("aria-valuenow", at);
  handle.setAttribute("aria-valuetext", moment(at));
  strip.dataset[handle.dataset.handle] = at;
  const [from, to] = [place(strip, number(strip, "from")), place(strip, number(strip, "to"))];
  const interval = strip.querySelector(".interval");
  interval.setAttribute("x", Math.min(from, to));
  interval.setAttribute("width", Math.abs(to - from));
}

function show(strip, focus) {
  const url = new URL(location.href);
  const ends = [number(strip, "from"), number(strip, "to")].sort((a, b) => a - b);
  url.searchParams.set("from", ends[0]);
  url.searchParams.set("to", ends[1]);
  if (!["resources", "timeline"].includes(url.searchParams.get("tab"))) url.searchParams.set("tab", "compare");
  go(url.href, { replace: true, scroll: false }).then(() => {
    if (focus) document.querySelector(`[data-handle="${focus}"]`)?.focus();
  });
}

export function start() {
  let held = null;
  document.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-handle]");
    if (!handle) return;
    event.preventDefault();
    held = handle;
    handle.setPointerCapture(event.pointerId);
  });
  document.addEventListener("pointermove", (event) => {
    if (!held) return;
    const strip = held.closest("[data-strip]");
    const box = strip.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * strip.viewBox.baseVal.width;
    const [begin, end, left, right] = edges(strip);
    draw(strip, held, Math.round(begin + within((x - left) / (right - left)) * (end - begin)));
  });
  document.addEventListener("pointerup", () => {
    if (!held) return;
    const strip = held.closest("[data-strip]");
    held = null;
    show(strip, null);
  });
  document.addEventListener("keydown", (event) => {
    const handle = event.target.closest?.("[data-handle]");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!handle || !step) return;
    event.preventDefault();
    const strip = handle.closest("[data-strip]");
    const moments = strip.dataset.moments.split(" ").map(Number);
    const at = number(strip, handle.dataset.handle);
    const next = step > 0 ? moments.find((one) => one > at) : moments.findLast((one) => one < at);
    if (next === undefined) return;
    draw(strip, handle, next);
    show(strip, handle.dataset.handle);
  });
}

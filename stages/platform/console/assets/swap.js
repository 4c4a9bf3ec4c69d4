// Goes from page to page without losing what is around it, and patches rows in place.
import { tell } from "./time.js";

// Counts what somebody went to: of what was asked for before the last of it nothing is shown.
let latest = 0;
// So many pages that somebody went to have not come yet.
let coming = 0;
// How often the page was read again, and the newest of these that is shown.
let refreshes = 0;
let newest = 0;
// The address that is shown.
let shown = location.href;
const places = new Map();
const SILENT = "The platform does not answer; this page is as it was.";

function named(url) {
  const { pathname, searchParams } = new URL(url, location.href);
  return `${pathname}?${searchParams}`;
}

// What somebody changed is kept, unless they say otherwise.
export const leaves = (part = document) => !part.querySelector("[data-unsaved]") || confirm("What you changed is not committed. Leave it?");

export function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { said.textContent = ""; }, 2500);
}

// What was asked for until now is of no use any more.
export const outdate = () => { latest += 1; };

const parsed = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");

const inTime = () => AbortSignal.timeout(30_000);

export const given = (url, more) => fetch(url, { signal: inTime(), ...more }).then((answer) => (answer.ok ? parsed(answer) : null)).catch(() => null);

const script = (of) => of.querySelector("[src$='/console.js']")?.src;

async function read(url, mine) {
  const response = await fetch(url, { headers: { accept: "text/html" }, signal: inTime() });
  if (new URL(response.url).pathname === "/sign-in") {
    location.href = response.url;
    return null;
  }
  const page = await parsed(response);
  if (mine !== latest) return null;
  if (!page.querySelector("nav.side")) throw new Error(`The platform answered ${response.status}, which is no page.`);
  // Another version has other scripts. What was typed stays.
  if (script(page) !== script(document) && !document.querySelector("dialog[open], [data-unsaved], form:is(.panel, .fields)")) {
    [location.href] = url.split("#");
    return null;
  }
  return page;
}

export const signIn = () => `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;

export async function signedOut() {
  const answer = await fetch("/preview", { method: "HEAD", redirect: "manual", signal: inTime() }).catch(() => null);
  return answer?.status === 401;
}

// The page that somebody goes to; `false` where the platform does not answer.
async function come(url) {
  coming += 1;
  document.documentElement.dataset.coming = "yes";
  try {
    return await read(url, ++latest);
  } catch (error) {
    // What does not come has a name of its own.
    say(error.name === "Error" ? error.message : SILENT);
    return false;
  } finally {
    coming -= 1;
    if (!coming) delete document.documentElement.dataset.coming;
  }
}

// Shows another address; `keep`: the field that somebody types in stays as it is.
export async function go(url, { replace = false, keep = false, scroll = true, restore = false } = {}) {
  if (!leaves()) return;
  places.set(named(location.href), { y: scrollY, key: selected() });
  const page = await come(url);
  if (!page) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  show(page, keep);
  if (restore && places.has(named(url))) comeBack(url);
  else if (scroll) scrollTo(0, 0);
  arrive();
}

// Whoever came by a link that is gone begins at what is new.
function arrive() {
  if (document.activeElement === document.body) document.querySelector("main").focus({ preventScroll: true });
}

const selected = () => document.querySelector("tr[aria-selected='true']")?.dataset.key;

function select(key) {
  const row = key && document.querySelector(`tr[data-key="${CSS.escape(key)}"]`);
  row?.setAttribute("aria-selected", "true");
  return row;
}

// Where somebody was on a page that they left: the place on the screen, and the row.
function comeBack(url) {
  const place = places.get(named(url));
  if (!place) return;
  scrollTo(0, place.y);
  select(place.key)?.querySelector("a")?.focus({ preventScroll: true });
}

// `kept`, which were asked for elsewhere, stay where the page has a place for them.
function show(page, keep, kept = []) {
  shown = location.href;
  document.title = page.title;
  for (const one of kept) page.querySelector(`main [data-kept="${CSS.escape(one.dataset.kept)}"]`)?.replaceWith(one);
  for (const one of ["main", "nav.side ul"]) document.querySelector(one).replaceWith(page.querySelector(one));
  if (!keep) {
    const bar = document.querySelector(".bar");
    const live = bar.querySelector("[data-live]");
    bar.replaceChildren(...page.querySelector(".bar").childNodes);
    bar.querySelector("[data-live]").replaceWith(live);
  }
  tell(document);
  document.dispatchEvent(new Event("shown"));
}

// What left the rows says why: how it is now.
async function tellLeft(foot, left) {
  const how = async ([key, was]) => {
    const name = decodeURIComponent(key.split("/").pop());
    const now = (await given(`/preview/${key}`))?.querySelector("[data-now]")?.dataset.now;
    return now ? `${name} is ${now}${now === "Healthy" && was !== now ? " again" : ""}` : name;
  };
  const said = await Promise.all(left.slice(0, 3).map(how));
  foot.textContent = `${left.length} left ${foot.dataset.left}: ${said.join(", ")}`;
}

// Rows, and other parts that a page always has, by what they are called.
const PARTS = "main [data-key], main [data-part]";
const called = (one) => one.dataset.key ?? one.dataset.part;

// What is said but for when, which passes by itself.
function words(part) {
  const all = part.cloneNode(true);
  for (const time of all.querySelectorAll("time")) time.remove();
  return all.textContent;
}

const links = (part) => [...part.querySelectorAll("a, button")];

function held() {
  const link = document.activeElement;
  const part = link?.closest(PARTS);
  return part && { name: called(part), place: links(part).indexOf(link), href: link.getAttribute("href") };
}

// Whoever was at a link by the keyboard stays there, although it is another element now.
function giveBack(focus) {
  if (!focus || document.activeElement !== document.body) return;
  const part = [...document.querySelectorAll(PARTS)].find((one) => called(one) === focus.name);
  if (!part) return;
  const all = links(part);
  (all.find((link) => focus.href && link.getAttribute("href") === focus.href) ?? all[focus.place] ?? part).focus({ preventScroll: true });
}

// Reads the same address again, unless somebody is on the way to another: gives whether it did. What is called the same is
// changed in its place; where the order is another it waits until the pointer rests.
export async function refresh() {
  if (coming) return false;
  const mine = ++refreshes;
  const page = await read(location.href, latest);
  if (!page || mine < newest) return true;
  newest = mine;
  const focus = held();
  const shownNow = [...document.querySelectorAll(PARTS)];
  const now = new Map(shownNow.map((one) => [called(one), one]));
  const next = [...page.querySelectorAll(PARTS)];
  const same = next.length === shownNow.length && next.every((one, at) => called(one) === called(shownNow[at]));
  const there = new Set(next.map(called));
  const left = shownNow.map((one) => one.dataset.key).filter((key) => key && !there.has(key));
  tell(page);
  tell(document);
  // What somebody unfolded stays so.
  for (const one of document.querySelectorAll("details[open][data-fold]")) page.querySelector(`details[data-fold="${CSS.escape(one.dataset.fold)}"]`)?.setAttribute("open", "");
  if (same || document.querySelector("main table:hover, main svg:hover")) {
    for (const [at, one] of next.entries()) {
      const old = same ? shownNow[at] : now.get(called(one));
      if (!old || old.innerHTML === one.innerHTML) continue;
      if (one.dataset.state) old.dataset.state = one.dataset.state;
      const isTime = words(old) === words(one);
      old.innerHTML = one.innerHTML;
      if (isTime) continue;
      old.classList.remove("fresh");
      void old.offsetWidth;
      old.classList.add("fresh");
    }
    // Of the strip, and of what stands beside the rows, nobody holds a handle now.
    for (const other of ["main .life", "main .foot"]) {
      const [old, fresh] = [document.querySelector(other), page.querySelector(other)];
      if (old && fresh && !old.matches(":hover, :focus-within")) old.replaceWith(fresh);
    }
  } else {
    const key = selected();
    const preview = document.getElementById("preview");
    show(page, true, document.querySelectorAll("main [data-kept]"));
    const after = document.getElementById("preview");
    if (preview && after) after.replaceWith(preview);
    select(key);
  }
  giveBack(focus);
  const foot = document.querySelector(".foot [data-left]");
  if (foot && left.length) tellLeft(foot, left.map((key) => [key, now.get(key).querySelector(".glyph")?.ariaLabel]));
  document.dispatchEvent(new Event("patched"));
  return true;
}

export function start() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("main a[href], .bar a[href], nav.side a[href], #palette a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.href.baseVal ?? link.href, location.href);
    if (url.origin !== location.origin) return;
    event.preventDefault();
    document.getElementById("palette").close();
    // Within an application, what one looks at stays where it is.
    go(url.href, { restore: "back" in link.dataset, scroll: url.pathname !== location.pathname });
  });
  addEventListener("popstate", async () => {
    if (!leaves()) return history.pushState(null, "", shown);
    const page = await come(location.href);
    if (page === false) history.pushState(null, "", shown);
    if (!page) return;
    show(page, false);
    comeBack(location.href);
    arrive();
  });
}

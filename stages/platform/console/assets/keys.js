// The keyboard: g and a letter goes, j and k move, Enter opens, Escape goes back.
import { filterField } from "./filter.js";
import { given, go, say } from "./swap.js";
import { open } from "./palette.js";
import { tell } from "./time.js";

const rows = () => [...document.querySelectorAll("main [data-row]")];
let preview;

function select(row) {
  for (const other of document.querySelectorAll("main [data-row][aria-selected]")) other.removeAttribute("aria-selected");
  if (!row) return;
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  const panel = document.getElementById("preview");
  if (!panel || !row.dataset.preview) return;
  clearTimeout(preview);
  preview = setTimeout(async () => {
    const page = await given(row.dataset.preview);
    if (row.getAttribute("aria-selected") !== "true") return;
    panel.replaceChildren(...page?.body.childNodes ?? []);
    tell(panel);
  }, 60);
}

function move(step) {
  const all = rows();
  const at = all.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const row = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  select(row);
  // What is read aloud is where the focus is.
  row?.querySelector("a[href]")?.focus({ preventScroll: true });
}

// Over plain http a page may not; then what is shown is selected, as a prompt has one line.
export async function copy(text, done, at) {
  try {
    await navigator.clipboard.writeText(text);
    done();
  } catch {
    if (!at) return prompt("Copy it", text);
    getSelection().selectAllChildren(at);
    if (document.execCommand("copy")) done();
  }
}

function link() {
  const button = document.querySelector("[data-copy-moment]");
  const url = new URL(location.href);
  if (button) for (const end of ["from", "to"]) url.searchParams.set(end, button.dataset[end]);
  copy(url.href, () => say("Link copied"));
}

// Whoever walks rows leaves them first.
function back() {
  const crumb = document.querySelector(".bar [data-back]");
  const walks = document.activeElement?.closest("[data-row]");
  if (crumb && !walks) go(crumb.href, { restore: true });
  else select(null);
  if (walks) document.querySelector("main").focus({ preventScroll: true });
}

const keep = (what) => { document.cookie = `${what}; path=/; max-age=31536000; samesite=lax`; };

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  keep(`theme=${next}`);
}

const help = () => document.getElementById("help").showModal();

const press = (css) => document.querySelector(css)?.click();

export function start() {
  let first = "";
  const single = document.querySelector("#help input");
  single.checked = !document.cookie.includes("keys=off");
  single.addEventListener("change", () => keep(`keys=${single.checked ? "on" : "off"}`));
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      return open("");
    }
    const typing = event.target.matches?.("input, select, textarea") || document.querySelector("dialog[open]");
    if (event.key === "Escape" && event.target.matches?.("[data-filter] input")) return event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || (event.key.length === 1 && !single.checked)) return;
    if (first === "g") {
      first = "";
      const target = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (target) {
        event.preventDefault();
        go(target.href);
      }
      return;
    }
    const row = document.querySelector("main [data-row][aria-selected='true']");
    const acts = {
      g: () => { first = "g"; setTimeout(() => { first = ""; }, 1500); },
      j: () => move(1),
      k: () => move(-1),
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: () => row?.querySelector("a[href]")?.click(),
      "/": () => (filterField() ? filterField().focus() : open("")),
      ":": () => open(":"),
      "?": help,
      "[": () => press(".bar a[rel=prev]"),
      "]": () => press(".bar a[rel=next]"),
      y: link,
      s: () => press("main [data-act=sync]"),
      Escape: back,
    };
    // What has the focus takes Enter and arrows itself; a link of a row has no use for arrows.
    const own = event.target.closest?.("a, button, summary, [role=slider], [tabindex='0']");
    if (own && (event.key === "Enter" || (event.key.startsWith("Arrow") && !own.matches("[data-row] a")))) return;
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  document.addEventListener("click", (event) => {
    const within = (css) => event.target.closest(css);
    if (within("[data-theme-switch]")) theme();
    if (within("[data-help]")) help();
    if (within("[data-find]")) open("");
    if (within("[data-copy-moment]")) link();
    const row = within("main [data-row]");
    if (row && !within("a, button")) select(row);
  });
  document.addEventListener("dblclick", (event) => event.target.closest("main [data-row]")?.querySelector("a[href]")?.click());
  document.addEventListener("rows", () => move(1));
}

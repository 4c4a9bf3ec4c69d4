// Ctrl-K finds anything; a colon runs a command.
import { part } from "./dialog.js";
import { given, go } from "./swap.js";

const commands = () => [...document.querySelectorAll("nav.side [data-go]")].map((link) => [link.firstElementChild.textContent, link.href]);
let box, list, timer, shown;

function mark(step) {
  const all = [...list.querySelectorAll("a")];
  const at = all.findIndex((one) => one.ariaSelected === "true");
  const next = Math.min(Math.max(at + step, 0), all.length - 1);
  all.forEach((one, index) => {
    one.id = `found-${index}`;
    one.setAttribute("aria-selected", index === next);
  });
  if (all.length) box.setAttribute("aria-activedescendant", `found-${next}`);
  else box.removeAttribute("aria-activedescendant");
}

const note = (text) => part("li", text, { class: "mute", role: "option", "aria-disabled": "true" });

const command = ([name, href]) => part("li", "", { role: "presentation" }, part("a", name, { role: "option", tabindex: "-1", href }));

async function find() {
  const text = box.value.trim();
  let [found, page] = [[], true];
  if (text && !text.startsWith(":")) {
    page = await given(`/find?${new URLSearchParams({ q: text })}`);
    if (box.value.trim() !== text) return;
    found = page ? page.body.children : [note("The platform gives no answer")];
  }
  const named = commands().filter(([name]) => name.toLowerCase().startsWith(text.replace(/^:/, "").trim().toLowerCase()));
  list.replaceChildren(...found, ...named.map(command));
  if (!list.firstChild) list.append(note("Nothing is called so"));
  shown = page && box.value;
  mark(1);
}

export function open(text) {
  box.value = text;
  document.getElementById("palette").showModal();
  find();
}

export function start() {
  box = document.querySelector("#palette input");
  list = document.getElementById("found");
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, 60);
  });
  box.addEventListener("keydown", async (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      mark(step);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      // Whoever types faster than it is looked for means what they typed.
      clearTimeout(timer);
      if (box.value !== shown) await find();
      const link = list.querySelector("a[aria-selected='true']");
      if (!link) return;
      document.getElementById("palette").close();
      go(link.href);
    }
  });
}

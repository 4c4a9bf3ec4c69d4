// The field: typing filters at once, and the address is the whole state.
import { go, outdate } from "./swap.js";

// Longer than from one key to the next: rows of half a word hold nobody up.
const REST = 150;

export const filterField = () => document.querySelector("[data-filter] input[type=text]");

function address(form) {
  const values = new FormData(form);
  const query = new URLSearchParams();
  const text = values.getAll("q").map((one) => one.trim()).filter(Boolean).join(" ");
  if (text) query.set("q", text);
  for (const [name, usual] of [["group", "environment"], ["sort", "attention"]]) {
    const value = values.get(name);
    if (value && value !== usual) query.set(name, value);
  }
  const path = form.getAttribute("action");
  return query.size ? `${path}?${query}` : path;
}

async function chip(form) {
  await go(address(form), { replace: true });
  const input = filterField();
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}

export function start() {
  let timer;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("[data-filter]");
    if (!form) return;
    clearTimeout(timer);
    outdate();
    if (event.target.matches("select")) go(address(form), { replace: true });
    else if (/(^|\s)[a-z]+:(?:"[^"]+"|[^\s"]+)\s$/.test(event.target.value)) chip(form);
    else timer = setTimeout(() => go(address(form), { replace: true, keep: true, scroll: false }), REST);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-filter]");
    if (!form) return;
    event.preventDefault();
    clearTimeout(timer);
    chip(form).then(() => {
      filterField().blur();
      document.dispatchEvent(new Event("rows"));
    });
  });
  document.addEventListener("keydown", (event) => {
    const input = event.target.closest?.("[data-filter] input[type=text]");
    if (!input || event.key !== "Backspace" || input.value) return;
    const last = [...input.form.querySelectorAll(".chip a")].at(-1);
    if (!last) return;
    event.preventDefault();
    go(last.href, { replace: true }).then(() => filterField().focus());
  });
}

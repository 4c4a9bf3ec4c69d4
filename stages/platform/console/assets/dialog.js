// Parts of a page that are made here, and dialogs.
import { refresh, say } from "./swap.js";

export function part(name, text, attributes = {}, ...inside) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export const empty = (title, ...lines) => part("div", "", { class: "empty" }, part("h2", title), ...lines.map((line) => (typeof line === "string" ? part("p", line) : line)));

// A button; what keeps somebody from it is reached by the keyboard, too.
export function button(title, why, act, attributes = {}) {
  const made = part("button", title, { type: "button", ...attributes, ...(why && { "aria-disabled": "true", title: why }) });
  made.addEventListener("click", () => (why ? say(why) : act()));
  return made;
}

// Only what a browser opens as a page of somebody else leads anywhere.
export function outward(text, address) {
  const is = /^https?:$/.test(URL.canParse(address) ? new URL(address).protocol : "");
  return is ? part("a", text, { href: address, target: "_blank", rel: "noreferrer" }) : part("code", address);
}

export function field(body, title, attributes) {
  body.append(part("label", title, { class: "field-of" }, part("input", "", { type: "text", required: "", autocomplete: "off", spellcheck: "false", ...attributes })));
}

export function choice(body, name, value, is, ...what) {
  const input = part("input", "", { type: "radio", name, value });
  input.checked = is;
  body.append(part("label", "", { class: "choice" }, input, ...what));
  return input;
}

// What was said against it, with the way on where there is one.
export const against = ({ message, to }) => (to ? [`${message}: `, part("a", "sign in", { href: to })] : [message]);

export function frame(title) {
  document.getElementById("act")?.remove();
  const [body, problem, acts] = [part("div", "", { class: "body" }), part("p", "", { class: "bad", role: "alert" }), part("div", "", { class: "acts" })];
  const form = part("form", "", { method: "dialog" }, part("h2", title, { id: "act-title" }), body, problem, acts);
  const dialog = part("dialog", "", { id: "act", "aria-labelledby": "act-title" }, form);
  document.body.append(dialog);
  const controller = new AbortController();
  dialog.addEventListener("close", () => { controller.abort(); dialog.remove(); });
  return { dialog, form, body, problem, acts, signal: controller.signal };
}

// `look` adds what is seen before; `act` does it, and gives what is said then; `after` shows what is there since.
export async function propose({ title, verb, what, wait, look, act, after = refresh }) {
  const { dialog, form, body, problem, acts } = frame(title);
  const [go, leave] = [part("button", verb, { class: "primary", type: "submit" }), part("button", "Leave it", { type: "button" })];
  body.append(part("p", what));
  acts.append(go, leave);
  leave.addEventListener("click", () => dialog.close());
  go.disabled = Boolean(look);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    go.disabled = true;
    try {
      const said = await act(new FormData(form));
      dialog.close();
      say(said);
      await after();
    } catch (error) {
      problem.replaceChildren(...against(error));
      go.disabled = false;
    }
  });
  dialog.showModal();
  if (!look) return;
  // Until somebody goes on from there, an Enter does nothing.
  const begin = form.firstElementChild;
  begin.tabIndex = -1;
  begin.focus();
  const waits = part("p", wait, { class: "mute", role: "status" });
  body.append(waits);
  try {
    await look(body);
    go.disabled = false;
    if (document.activeElement === begin) body.querySelector("input:not([type=checkbox]):not([type=radio])")?.focus();
  } catch (error) {
    problem.replaceChildren(...against(error));
  }
  waits.remove();
}

// Parts of a page that a runtime is asked for once they are shown.
import { against, button, empty, part } from "./dialog.js";

// `fill` gives what stands there, of what the part says of itself, where it is, and a way to read it again.
export function asked(name, title, why, fill) {
  const read = async (section) => {
    const { dataset: place } = document.querySelector("[data-runtime]");
    const again = () => read(section);
    section.dataset.loaded = "yes";
    section.replaceChildren(part("p", `Asking ${place.runtime}…`, { class: "mute", role: "status" }));
    try {
      section.replaceChildren(...await fill(section.dataset, place, again));
    } catch (error) {
      const told = part("p", "", { class: "bad", role: "alert" }, ...against(error));
      section.replaceChildren(empty(title, told, why(place.runtime), button("Try again", "", again)));
    }
  };
  return () => {
    const look = () => document.querySelectorAll(`[data-${name}]:not([data-loaded])`).forEach(read);
    document.addEventListener("shown", look);
    look();
  };
}

// A table with a head; `hidden` are the names of columns that are only read aloud.
export function columns(names, ...hidden) {
  const table = part("table");
  const head = table.createTHead().insertRow();
  for (const name of names) head.append(part("th", "", { scope: "col" }, hidden.includes(name) ? part("span", name, { class: "hidden" }) : name));
  return [table, table.createTBody()];
}

export function line(body, ...cells) {
  const row = body.insertRow();
  for (const content of cells) row.insertCell().append(content ?? "");
  return row;
}

// Forms that ask before they do something, and those that show what they would do.
import { frame, part } from "./dialog.js";
import { given } from "./swap.js";

function ask(form, button) {
  const { dialog, body, acts } = frame(button?.getAttribute("aria-label") ?? button?.textContent ?? "");
  const leave = part("button", "Leave it ", { value: "no", autofocus: "" }, part("kbd", "Esc", { "aria-hidden": "true" }));
  body.append(part("p", form.dataset.confirm));
  acts.append(part("button", button?.textContent ?? "Do it", { class: "primary", value: "yes" }), leave);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") form.submit();
    else button?.focus();
  });
  dialog.showModal();
}

let timer, sent;
let latest = 0;
async function preview(form) {
  const mine = ++latest;
  const body = new URLSearchParams(new FormData(form));
  const page = await given(form.dataset.preview, { method: "POST", body });
  if (!page || mine !== latest) return;
  const [old, fresh] = [document.getElementById("preview"), page.getElementById("preview")];
  if (old && fresh && old.innerHTML !== fresh.innerHTML) old.innerHTML = fresh.innerHTML;
}

export function start() {
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    const asks = form.dataset.confirm;
    // What one click makes, such as a token, another does not take away.
    if (asks || sent === form) event.preventDefault();
    if (asks) ask(form, submitter);
    else if (form.method === "post") {
      sent = form;
      setTimeout(() => { sent = null; }, 5000);
    }
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("[data-preview]");
    if (!form) return;
    clearTimeout(timer);
    timer = setTimeout(() => preview(form), 200);
  });
}

// Forms that ask before they do something, and those that show what they would do.
let asked;

// What is going to happen, and the choice: the form's own button says it again.
function ask(form, button) {
  asked?.remove();
  asked = document.createElement("dialog");
  asked.setAttribute("aria-labelledby", "asked-what");
  asked.innerHTML = `<h2 id="asked-what"></h2><p></p><form method="dialog" class="acts"><button class="primary" value="yes"></button><button value="no" autofocus>Leave it <kbd aria-hidden="true">Esc</kbd></button></form>`;
  asked.querySelector("h2").textContent = button?.getAttribute("aria-label") ?? button?.textContent ?? "";
  asked.querySelector("p").textContent = form.dataset.confirm;
  asked.querySelector(".primary").textContent = button?.textContent ?? "Do it";
  asked.addEventListener("close", () => {
    if (asked.returnValue === "yes") form.submit();
    else button?.focus();
  });
  document.body.append(asked);
  asked.showModal();
}

let timer;
let latest = 0;
async function preview(form) {
  const mine = ++latest;
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.preview, { method: "POST", body }).catch(() => null);
  if (!answer?.ok || mine !== latest) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [old, fresh] = [document.getElementById("preview"), page.getElementById("preview")];
  if (old && fresh && old.innerHTML !== fresh.innerHTML) old.innerHTML = fresh.innerHTML;
}

export function start() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-confirm]");
    if (!form) return;
    event.preventDefault();
    ask(form, event.submitter);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("[data-preview]");
    if (!form) return;
    clearTimeout(timer);
    timer = setTimeout(() => preview(form), 200);
  });
}

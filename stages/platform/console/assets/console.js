// The console's entry: each module takes what it finds on the page.
import { start as acts } from "./acts.js";
import { start as time } from "./time.js";
import { start as swap } from "./swap.js";
import { start as events } from "./events.js";
import { start as files } from "./files.js";
import { start as filter } from "./filter.js";
import { start as forms } from "./forms.js";
import { start as git } from "./git.js";
import { copy, start as keys } from "./keys.js";
import { start as live } from "./live.js";
import { start as palette } from "./palette.js";
import { start as strip } from "./strip.js";

if (document.querySelector("nav.side")) {
  for (const begin of [time, swap, filter, acts, events, files, git, strip, keys, palette, live]) begin();
}
forms();
document.addEventListener("click", ({ target }) => {
  const of = target.closest("[data-copy]");
  if (of) copy(of.dataset.copy, () => { of.textContent = "Copied"; }, of.previousElementSibling);
});
document.documentElement.dataset.ready = "true";

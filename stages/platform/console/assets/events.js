// Kubernetes events, as the runtime reads them now.
import { asked, columns, line } from "./asked.js";
import { button, empty, part } from "./dialog.js";
import { ask } from "./proxy.js";
import { tell } from "./time.js";

function table(all) {
  const [made, body] = columns(["type", "last", "reason", "of", "message"], "type");
  made.className = "events";
  for (const one of all) {
    const warns = one.type === "Warning";
    const type = part("span", warns ? "▲" : "●", { class: `glyph ${warns ? "warn" : "still"}`, role: "img", "aria-label": one.type || "Event" });
    const at = one.lastTimestamp || one.firstTimestamp;
    const times = one.count > 1 ? ` (${one.count} times)` : "";
    line(body, type, at && part("time", at, { datetime: at, "data-ago": "" }), part("b", one.reason), `${one.involvedObject?.kind ?? ""}/${one.involvedObject?.name ?? ""}`, `${one.message ?? ""}${times}`);
  }
  tell(made);
  return made;
}

const why = (runtime) => `They are not kept here: the app proxy of ${runtime} reads them in its cluster.`;

export const start = asked("events", "Events cannot be read now", why, async ({ group, kind, of, within, title }, { runtime, namespace, name }, again) => {
  const resource = kind ? { group, kind, namespace: within, name: of } : null;
  const { applicationEvents: all } = await ask(runtime, "applicationEvents", { application: { runtime, namespace, name }, resource });
  const more = button("Read again", "", again);
  return all.length ? [table(all), more] : [empty(`The cluster remembers no event of ${title}`, "Kubernetes forgets events after an hour, unless it is set otherwise. What was reported stays under Timeline.", more)];
});

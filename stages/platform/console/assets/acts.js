// Acts on an application: each says what it will do, and does it as whoever asked.
import { against, choice, frame, part, propose } from "./dialog.js";
import { difference } from "./lines.js";
import { ask as asked, send } from "./proxy.js";
import { given, say } from "./swap.js";
import { tell } from "./time.js";

const ask = ({ application }, name) => asked(application.runtime, name, { application });

function changed({ kind, name, live, target }) {
  const what = live ? (target ? "changes" : "is no longer in Git") : "is made";
  return part("details", "", {}, part("summary", `${kind}/${name} ${what}`), difference(live, target));
}

async function differences(to, body) {
  const { applicationDiff: all } = await ask(to, "applicationDiff");
  body.append(part("p", all.length ? `${all.length} ${all.length === 1 ? "resource is" : "resources are"} not as Git says:` : "Everything is as Git says: nothing changes."));
  body.append(...all.map(changed));
  if (all.length) body.querySelector("details").open = true;
  if (!all.some((one) => one.live && !one.target)) return;
  body.append(part("label", "", {}, part("input", "", { type: "checkbox", name: "prune" }), " Delete what is no longer in Git"));
}

// What Git gives is cut; a chart's version is not.
const short = (all) => all.replace(/\b([\da-f]{7})[\da-f]{33,}\b/g, "$1").replaceAll(",", " ");

const revision = (one) => one.revision || one.revisions.join();

const began = ({ deployStartedAt, deployedAt } = {}) => Date.parse(deployStartedAt || deployedAt);

// Each as the runtime has it, with what the platform says within 3 seconds.
async function deployments(to, body) {
  const { applicationHistory: all } = await ask(to, "applicationHistory");
  const page = await given(`${location.pathname}/deployments?since=${all.at(-1)?.deployedAt}`, { signal: AbortSignal.timeout(3000) });
  const known = [...(page?.querySelectorAll("li") ?? [])];
  // The last is there, unless another revision was begun since.
  const newest = known[0]?.dataset;
  const first = newest?.at > began(all[0]) && newest.revision !== revision(all[0]) ? 0 : 1;
  if (all.length <= first) throw new Error("There is no deployment before this one.");
  const set = part("fieldset", "", {}, part("legend", "To the deployment"));
  for (const [index, one] of all.entries()) {
    const { id, deployedAt, initiatedBy, automated } = one;
    const what = part("span", "", {}, part("code", short(revision(one))), " ");
    if (deployedAt) what.append(part("time", "", { datetime: deployedAt }), " ");
    const by = initiatedBy || (automated && "Argo CD");
    what.append(part("span", by && `by ${by}`, { class: "mute" }));
    if (!index) what.append(" ", part("b", "deployed last"));
    const is = ({ dataset }) => dataset.revision === revision(one) && dataset.at <= began(one);
    what.append(...(known.find(is)?.cloneNode(true).childNodes ?? []));
    choice(set, "id", id, index === first, what).disabled = index < first;
  }
  tell(set);
  body.append(set);
}

// What each looks at before, and what it asks for beside what it is done to.
const ACTS = {
  sync: { look: differences, more: (to, form) => ({ options: { prune: form.get("prune") === "on" } }) },
  rollback: { look: deployments, more: (to, form) => ({ options: { id: Number(form.get("id")) } }) },
  "promote-full": { more: () => ({ full: true }) },
  // The page has the form: how its name begins, and then the parameters.
  "submit-workflow": {
    look: (to, body) => body.append(document.querySelector("[data-form]").content.cloneNode(true)),
    more: (to, form) => {
      const [[, generateName], ...rest] = form;
      return { args: { namespace: to.resource.namespace, workflowTemplateName: to.resource.name, generateName, parameters: rest.map(([name, value]) => ({ name, value })) } };
    },
  },
};

const flow = ({ namespace, name }) => ({ namespace, name });

async function act({ application, resource }, query, more) {
  const rollout = resource && flow(resource);
  const of = { Rollout: { application, rollout }, Workflow: rollout, WorkflowTemplate: {} }[resource?.kind] ?? { application, resource };
  const { [query]: made } = await asked(application.runtime, query, { ...of, ...more });
  return made?.newWorkflowName && `Workflow ${made.newWorkflowName} was begun`;
}

function open(button, to) {
  const { look, more } = ACTS[button.dataset.act] ?? {};
  const verb = button.firstChild.textContent.trim().replace("…", "");
  const name = to.resource ? `${to.resource.kind} ${to.resource.name}` : to.application.name;
  propose({
    title: `${verb} ${name}`,
    verb,
    what: button.dataset.what,
    wait: `Asking ${to.application.runtime}…`,
    look: look && ((body) => look(to, body)),
    act: async (form) => (await act(to, button.dataset.query, more?.(to, form))) || `${name}: ${verb.toLowerCase()} was asked for`,
  });
}

// Lines as they come, the last two thousand.
async function logs({ application, resource }, query) {
  const { dialog, body, problem, acts, signal } = frame(`Logs of ${resource.kind} ${resource.name}`);
  dialog.classList.add("wide");
  const out = part("pre", "", { tabindex: "0", "aria-label": "Lines" });
  body.append(out);
  acts.append(part("button", "Close", { type: "submit" }));
  dialog.showModal();
  const of = resource.kind === "Workflow" ? flow(resource) : { application, resource };
  try {
    const answer = await send(application.runtime, query, { ...of, options: { follow: true, tailLines: 200 } }, { headers: { accept: "text/event-stream" }, signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const events = (rest + chunk.value).split("\n");
      rest = events.pop();
      for (const line of events.filter((one) => one.startsWith("data:") && one.length > 6)) {
        const { data, errors } = JSON.parse(line.slice(5));
        const entry = data?.[query];
        if (errors?.length || entry?.error) problem.textContent = errors?.map((error) => error.message).join("\n") ?? entry.error;
        if (!entry?.data) continue;
        const below = out.scrollTop + out.clientHeight >= out.scrollHeight - 8;
        out.append(part("span", `${entry.data.podName ? `${entry.data.podName}  ` : ""}${entry.data.content}\n`));
        if (out.childElementCount > 2000) out.firstElementChild.remove();
        if (below) out.scrollTop = out.scrollHeight;
      }
    }
    if (!out.childElementCount && !problem.textContent) problem.textContent = "There are no lines.";
  } catch (error) {
    if (error.name !== "AbortError") problem.replaceChildren(...against(error));
  }
}

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button) return;
    if (button.getAttribute("aria-disabled")) return say(button.dataset.why);
    const { runtime, namespace, name } = document.querySelector("[data-runtime]").dataset;
    const of = button.closest("[data-kind]")?.dataset;
    const to = { application: { runtime, namespace, name }, resource: of && { group: of.group, version: "", kind: of.kind, namespace: of.namespace, name: of.name } };
    if (button.dataset.act.endsWith("logs")) logs(to, button.dataset.query);
    else open(button, to);
  });
}

// Acts on an application: each says what it will do, does it as whoever asked, and shows what was said against it.
import { frame, part, propose } from "./dialog.js";
import { difference } from "./lines.js";
import { ask as asked, send } from "./proxy.js";
import { say } from "./swap.js";

const ON = "$application: ApplicationId!";
const OF = "application: $application";
const FLOW = "$namespace: String!, $name: String!";

const ask = (to, query, variables) => asked(to.application.runtime, query, { application: to.application, ...variables });

function changed({ kind, name, live, target }) {
  const box = part("details");
  const what = live ? (target ? "changes" : "is no longer in Git") : "is made";
  box.append(part("summary", `${kind}/${name} ${what}`));
  box.append(difference(live, target));
  return box;
}

async function differences(to, body) {
  const { applicationDiff: all } = await ask(to, `query(${ON}) { applicationDiff(${OF}) { kind name live target } }`);
  body.append(part("p", all.length ? `${all.length} ${all.length === 1 ? "resource is" : "resources are"} not as Git says:` : "Everything is as Git says: nothing changes."));
  body.append(...all.map(changed));
  if (all.length) body.querySelector("details").open = true;
  if (!all.some((one) => one.live && !one.target)) return;
  const label = part("label");
  label.append(part("input", "", { type: "checkbox", name: "prune" }), " Delete what is no longer in Git");
  body.append(label);
}

async function deployments(to, body) {
  const { applicationHistory: all } = await ask(to, `query(${ON}) { applicationHistory(${OF}) { id revision revisions deployedAt initiatedBy } }`);
  const before = all.slice(1);
  if (!before.length) throw new Error("There is no deployment before this one.");
  const set = part("fieldset");
  set.append(part("legend", "To the deployment"));
  before.forEach((one, index) => {
    const label = part("label", "", { class: "choice" });
    const input = part("input", "", { type: "radio", name: "id", value: one.id });
    input.checked = index === 0;
    const revision = (one.revision || one.revisions[0] || "").slice(0, 7);
    label.append(input, " ", part("code", revision), ` ${one.deployedAt ? new Date(one.deployedAt).toLocaleString() : ""} ${one.initiatedBy ?? ""}`);
    set.append(label);
  });
  body.append(set);
}

const rollout = (field, what, more = "") => ({
  what,
  act: (to) => ask(to, `mutation(${ON}, $rollout: ObjectId!) { ${field}(${OF}, rollout: $rollout${more}) { metadata { name } } }`, { rollout: { namespace: to.resource.namespace, name: to.resource.name } }),
});

const flow = ({ resource: { namespace, name } }) => ({ namespace, name });

// Another is begun by some of them, whose name is said.
const workflow = (field, what, gives = "metadata { name }") => ({
  what,
  act: async (to) => {
    const data = await asked(to.application.runtime, `mutation(${FLOW}) { ${field}(namespace: $namespace, workflowName: $name) { ${gives} } }`, flow(to));
    return data?.[field]?.newWorkflowName && `Workflow ${data[field].newWorkflowName} was begun`;
  },
});

// What each will do, what it looks at before, and how it is done.
const ACTS = {
  sync: {
    what: (name) => `This makes the cluster what Git says of ${name}.`,
    look: differences,
    act: (to, form) => ask(to, `mutation(${ON}, $options: SyncOptions) { syncApplication(${OF}, options: $options) { metadata { name } } }`, { options: { prune: form.get("prune") === "on" } }),
  },
  refresh: {
    what: (name) => `Argo CD reads Git and the cluster again for ${name}. Nothing in the cluster changes, unless it syncs by itself.`,
    act: (to) => ask(to, `mutation(${ON}) { refreshApplication(${OF}) { metadata { name } } }`),
  },
  rollback: {
    what: (name) => `This deploys an earlier state of ${name} once more. Git stays as it is: the application is out of sync until Git says the same.`,
    look: deployments,
    act: (to, form) => ask(to, `mutation(${ON}, $options: RollbackOptions!) { rollbackApplication(${OF}, options: $options) { metadata { name } } }`, { options: { id: Number(form.get("id")) } }),
  },
  terminate: {
    what: (name) => `The operation of ${name} that runs now ends. What it has applied by then stays.`,
    act: (to) => ask(to, `mutation(${ON}) { terminateOperation(${OF}) { terminated } }`),
  },
  promote: rollout("promoteRollout", (name) => `${name} goes on from the pause that it stands at to its next step.`),
  "promote-full": rollout("promoteRollout", (name) => `${name} skips all steps and analyses that are left: the new version takes everything at once.`, ", full: true"),
  pause: rollout("pauseRollout", (name) => `${name} stays at the step that it is at until somebody lets it go on.`),
  resume: rollout("resumeRollout", (name) => `${name} is held no longer: it goes on from where it stands.`),
  skip: rollout("skipCurrentStep", (name) => `${name} leaves the step that it is at, whatever of it is not done, and goes on with the next one.`),
  abort: rollout("abortRollout", (name) => `${name} goes back to the stable version at once. Git still says the new one.`),
  retry: rollout("retryRollout", (name) => `${name}, which was aborted, begins anew.`),
  restart: rollout("restartRollout", (name) => `${name} makes its pods anew, some at a time. Their version stays.`),
  "retry-workflow": workflow("retryWorkflow", (name) => `What failed of ${name} is done once more. What succeeded stays as it is.`),
  "resubmit-workflow": workflow("resubmitWorkflow", (name) => `A workflow like ${name} begins anew. This one stays as it is.`, "newWorkflowName"),
  "suspend-workflow": workflow("suspendWorkflow", (name) => `${name} begins no further step. What runs goes on to its end.`),
  "resume-workflow": workflow("resumeWorkflow", (name) => `${name} goes on, and so do its steps that wait for somebody.`),
  "stop-workflow": workflow("stopWorkflow", (name) => `${name} ends. Its exit handlers still run.`),
  "terminate-workflow": workflow("terminateWorkflow", (name) => `${name} ends at once, without its exit handlers.`),
};

function open(button, to) {
  const { what, look, act } = ACTS[button.dataset.act];
  const verb = button.firstChild.textContent.trim().replace("…", "");
  const name = to.resource ? `${to.resource.kind} ${to.resource.name}` : to.application.name;
  propose({
    title: `${verb} ${name}`,
    verb,
    what: what(name),
    wait: `Asking ${to.application.runtime}…`,
    look: look && ((body) => look(to, body)),
    act: async (form) => {
      const said = await act(to, form);
      return typeof said === "string" ? said : `${name}: ${verb.toLowerCase()} was asked for`;
    },
  });
}

// Whose lines there are.
const LINES = {
  logs: (to) => {
    const { group, version, kind, namespace, name } = to.resource;
    const query = `subscription(${ON}, $resource: ResourceId, $options: ApplicationLogsOptionsInput) { applicationLogs(${OF}, resource: $resource, options: $options) { data { content podName } error done } }`;
    return ["applicationLogs", query, { application: to.application, resource: { group, version, kind, namespace, name } }];
  },
  "workflow-logs": (to) => {
    const query = `subscription(${FLOW}, $options: WorkflowLogsOptionsInput) { workflowLogs(namespace: $namespace, workflowName: $name, options: $options) { data { content podName } error done } }`;
    return ["workflowLogs", query, flow(to)];
  },
};

// Lines as they come, the last two thousand.
async function logs(to, word) {
  const { dialog, body, problem, acts, signal } = frame(`Logs of ${to.resource.kind} ${to.resource.name}`);
  dialog.classList.add("wide");
  const out = part("pre", "", { tabindex: "0", "aria-label": "Lines" });
  const leave = part("button", "Close", { type: "submit" });
  body.append(out);
  acts.append(leave);
  dialog.showModal();
  const [field, query, variables] = LINES[word](to);
  try {
    const answer = await send(to.application.runtime, query, { ...variables, options: { follow: true, tailLines: 200 } }, { headers: { accept: "text/event-stream" }, signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const events = (rest + chunk.value).split("\n");
      rest = events.pop();
      for (const line of events.filter((one) => one.startsWith("data:") && one.length > 6)) {
        const { data, errors } = JSON.parse(line.slice(5));
        const entry = data?.[field];
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
    if (error.name !== "AbortError") problem.textContent = error.message;
  }
}

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button) return;
    if (button.getAttribute("aria-disabled")) {
      say(button.dataset.why);
      return;
    }
    const { runtime, namespace, name } = document.querySelector("[data-runtime]").dataset;
    const of = button.closest("[data-kind]")?.dataset;
    const to = { application: { runtime, namespace, name }, resource: of && { group: of.group, version: "", kind: of.kind, namespace: of.namespace, name: of.name } };
    if (button.dataset.act in LINES) logs(to, button.dataset.act);
    else open(button, to);
  });
}

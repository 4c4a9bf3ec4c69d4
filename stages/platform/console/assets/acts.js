// Acts on an application: each says what it will do, does it in the name of whoever asked, and shows what was said against it.
import { refresh, say } from "./swap.js";

const ON = "$application: ApplicationId!";
const OF = "application: $application";
let controller;

function part(name, text, attributes = {}) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

async function send(to, query, variables, more = {}) {
  const url = `/2.0/api/runtimes/${encodeURIComponent(to.application.runtime)}/app-proxy/graphql`;
  const headers = { "content-type": "application/json", accept: "application/json", ...more.headers };
  const body = JSON.stringify({ query, variables: { application: to.application, ...variables } });
  const answer = await fetch(url, { method: "POST", headers, body, signal: more.signal });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the platform answered ${answer.status}`);
  return answer;
}

async function ask(to, query, variables) {
  const { data, errors } = await (await send(to, query, variables)).json();
  if (errors?.length) throw new Error(errors.map((error) => error.message).join("\n"));
  return data;
}

// What is taken away and what comes, line by line: the longest common part stays.
function lines(before, after) {
  const [a, b] = [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : []));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (x.length * y.length > 1e6) return [...x.map((line) => ["-", line]), ...y.map((line) => ["+", line])];
  const long = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
  }
  const found = a.slice(Math.max(0, start - 3), start).map((line) => [" ", line]);
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && x[i] === y[j]) found.push([" ", x[i++], j++]);
    else if (j >= y.length || (i < x.length && long[i + 1][j] >= long[i][j + 1])) found.push(["-", x[i++]]);
    else found.push(["+", y[j++]]);
  }
  return [...found, ...a.slice(a.length - end, a.length - end + 3).map((line) => [" ", line])];
}

function changed({ kind, name, live, target }) {
  const box = part("details");
  const what = live ? (target ? "changes" : "is no longer in Git") : "is made";
  box.append(part("summary", `${kind}/${name} ${what}`));
  const table = part("table", "", { class: "diff" });
  for (const [sign, line] of lines(live, target)) {
    const row = table.insertRow();
    row.className = { "-": "gone", "+": "new" }[sign] ?? "";
    row.insertCell().textContent = sign;
    row.insertCell().textContent = line;
  }
  box.append(table);
  return box;
}

async function difference(to, body) {
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

// What each will do, what it looks at before, and how it is done.
const ACTS = {
  sync: {
    what: (name) => `This makes the cluster what Git says of ${name}.`,
    look: difference,
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
};

function frame(title) {
  document.getElementById("act")?.remove();
  const dialog = part("dialog", "", { id: "act", "aria-labelledby": "act-title" });
  const form = part("form", "", { method: "dialog" });
  const [body, problem, acts] = [part("div", "", { class: "body" }), part("p", "", { class: "bad", role: "alert" }), part("div", "", { class: "acts" })];
  form.append(part("h2", title, { id: "act-title" }), body, problem, acts);
  dialog.append(form);
  document.body.append(dialog);
  controller = new AbortController();
  dialog.addEventListener("close", () => { controller.abort(); dialog.remove(); });
  return { dialog, form, body, problem, acts };
}

async function open(button, to) {
  const { what, look, act } = ACTS[button.dataset.act];
  const title = button.firstChild.textContent.trim().replace("…", "");
  const name = to.resource ? `${to.resource.kind} ${to.resource.name}` : to.application.name;
  const { dialog, form, body, problem, acts } = frame(`${title} ${name}`);
  const [go, leave] = [part("button", title, { class: "primary", type: "submit" }), part("button", "Leave it", { type: "button" })];
  body.append(part("p", what(name)));
  acts.append(go, leave);
  leave.addEventListener("click", () => dialog.close());
  go.disabled = Boolean(look);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    go.disabled = true;
    try {
      await act(to, new FormData(form));
      dialog.close();
      say(`${name}: ${title.toLowerCase()} was asked for`);
      await refresh();
    } catch (error) {
      problem.textContent = error.message;
      go.disabled = false;
    }
  });
  dialog.showModal();
  if (!look) return;
  const wait = part("p", `Asking ${to.application.runtime}…`, { class: "mute", role: "status" });
  body.append(wait);
  try {
    await look(to, body);
    go.disabled = false;
    go.focus();
  } catch (error) {
    problem.textContent = error.message;
  }
  wait.remove();
}

// Lines as they come, the last two thousand.
async function logs(to) {
  const { dialog, body, problem, acts } = frame(`Logs of ${to.resource.kind} ${to.resource.name}`);
  dialog.classList.add("wide");
  const out = part("pre", "", { tabindex: "0", "aria-label": "Lines" });
  const leave = part("button", "Close", { type: "submit" });
  body.append(out);
  acts.append(leave);
  dialog.showModal();
  const { group, version, kind, namespace, name } = to.resource;
  const query = `subscription(${ON}, $resource: ResourceId, $options: ApplicationLogsOptionsInput) { applicationLogs(${OF}, resource: $resource, options: $options) { data { content podName } error done } }`;
  const resource = { group, version, kind, namespace, name };
  try {
    const answer = await send(to, query, { resource, options: { follow: true, tailLines: 200 } }, { headers: { accept: "text/event-stream" }, signal: controller.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const events = (rest + chunk.value).split("\n");
      rest = events.pop();
      for (const line of events.filter((one) => one.startsWith("data:") && one.length > 6)) {
        const { data, errors } = JSON.parse(line.slice(5));
        const entry = data?.applicationLogs;
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
    if (button.dataset.act === "logs") logs(to);
    else open(button, to);
  });
}

// Files of a repository: listed, shown, changed and committed by somebody's own Git token.
import { asked } from "./asked.js";
import { button, choice, empty, field, outward, part, propose } from "./dialog.js";
import { difference } from "./lines.js";
import { ask } from "./proxy.js";
import { leaves, say } from "./swap.js";

// The integration of the host with a token of whoever looks; it may name no port.
async function mine(runtime, host) {
  const { user } = document.body.dataset;
  const { gitIntegrations: all } = await ask(runtime, "gitIntegrations");
  const is = ({ apiUrl: url }) => URL.canParse(url) && ["host", "hostname"].some((of) => [host, `api.${host}`].includes(new URL(url)[of]));
  return all.find((one) => is(one) && one.users.some(({ userId, isValid }) => userId === user && isValid))?.name;
}

async function git(at, query, args) {
  const all = { integrationName: at.integration, repo: at.repository, ...args };
  return (await ask(at.runtime, query, { args: all }))[query];
}

const wrong = (error) => part("p", error.message, { class: "bad pad", role: "alert" });

function names(at, path, files) {
  const table = part("table");
  const body = table.createTBody();
  const row = (title, act) => body.insertRow().insertCell().append(button(title, "", act, { class: "entry" }));
  if (path) row("../", () => list(at, path.split("/").slice(0, -1).join("/")));
  for (const one of files) {
    const title = one.path.split("/").pop();
    if (one.isDirectory) row(`${title}/`, () => list(at, one.path));
    else row(title, () => open(at, one.path));
  }
  return table;
}

// Only the answer to what was asked last counts.
function asks(at) {
  const mine = (at.asked = {});
  return () => at.asked === mine;
}

async function list(at, path) {
  if (!leaves(at.file)) return;
  const waits = asks(at);
  let found;
  try {
    const { files } = await git(at, "repositoryFiles", { ref: at.revision || "HEAD", path });
    const header = part("header", "", {}, part("code", `${at.repository}/${path}`), part("span", at.revision || "its own branch", { class: "mute" }));
    found = [header, names(at, path, files)];
  } catch (error) {
    found = [wrong(error)];
  }
  if (!waits()) return;
  at.folder.replaceChildren(...found);
  at.file.replaceChildren(part("p", "Choose a file: what you change in it can be committed.", { class: "mute pad" }));
}

async function open(at, path, said = "") {
  if (!leaves(at.file)) return;
  const waits = asks(at);
  at.file.replaceChildren(part("p", `Reading ${path}…`, { class: "mute pad", role: "status" }));
  try {
    const file = await git(at, "readFile", { ref: at.revision || "HEAD", path });
    if (waits()) edit(at, file, said);
  } catch (error) {
    if (waits()) at.file.replaceChildren(wrong(error));
  }
}

function edit(at, file, said) {
  // A field has its own ends of lines: the file's are put back, if of one kind.
  const ends = file.data.includes("\r\n") ? "\r\n" : "\n";
  const mixed = file.data.replaceAll(ends, "").match(/[\r\n]/);
  const text = part("textarea", "", { "aria-label": file.path, spellcheck: "false", autocomplete: "off", wrap: "off", rows: "22" });
  text.value = file.data;
  const was = text.value;
  text.addEventListener("input", () => text.toggleAttribute("data-unsaved", text.value !== was));
  text.readOnly = Boolean(mixed);
  const why = mixed ? "Its lines end in several ways, which would be lost here: change it elsewhere." : at.why;
  const act = () => (text.value === was ? say("Nothing is changed yet.") : commit(at, file, [was, text.value], ends));
  const header = part("header", "", {}, part("code", file.path), part("span", `at ${file.revision.slice(0, 7)}`, { class: "mute" }), button("Commit…", why, act, { class: "primary" }));
  at.file.replaceChildren(header, ...(said ? [said] : []), text);
}

function commit(at, file, [was, now], ends) {
  const own = at.revision ? `the branch ${at.revision}` : "the repository's own branch";
  const called = file.path.split("/").pop().toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
  // What is done stays done where the rest fails.
  let made, said;
  propose({
    title: `Commit ${file.path}`,
    verb: "Commit",
    what: `This commits to ${at.repository} as you, by your Git token. What others changed meanwhile stays.`,
    look: async (body) => {
      body.append(part("details", "", { open: "" }, part("summary", "What changes"), difference(was, now)));
      field(body, "What the commit says", { name: "msg", value: `Change ${file.path}`, maxlength: "200" });
      choice(body, "to", "branch", true, ` Onto ${own}`);
      choice(body, "to", "pull", false, " Onto a new branch, with a pull request");
      field(body, "The new branch", { name: "branch", value: `change-${called}-${Date.now().toString(36)}`, maxlength: "200" });
    },
    act: async (form) => {
      const [msg, pull, branch, onto] = [form.get("msg").trim(), form.get("to") === "pull", form.get("branch").trim(), at.revision || null];
      if (!made) {
        const files = [{ path: file.path, revision: file.revision, data: now.replaceAll("\n", ends) }];
        const args = { files, msg, ...(pull ? { branchName: branch, baseRef: file.revision, targetBranch: onto } : { branchName: onto }) };
        const { sha } = await git(at, "commitFiles", args);
        made = { sha: sha.slice(0, 7), pull, branch };
      }
      const done = `${made.sha} is committed to ${made.pull ? made.branch : own}`;
      said = part("p", `${done}. `, { class: "pad", role: "status" });
      if (made.pull) {
        const args = { head: made.branch, base: onto, title: msg };
        const opened = git(at, "createPullRequest", args);
        const { number, url } = await opened.catch((error) => { throw new Error(`${done}, and no pull request was opened: ${error.message}`); });
        said.append(outward(`Pull request ${number}`, url));
      }
      at.file.querySelector("[data-unsaved]")?.removeAttribute("data-unsaved");
      return done;
    },
    after: () => open(at, file.path, said),
  });
}

const why = (runtime) => `The app proxy of ${runtime} reads them with your own Git token.`;

const begin = asked("files", "Files cannot be read now", why, async ({ title, host, repository, path, revision, settings, why: none }, { runtime }) => {
  const integration = await mine(runtime, host);
  if (!integration) {
    const way = part("p", "", {}, part("a", "Connect your Git account", { class: "button", href: settings }));
    return [empty(`You have no Git token of ${host} at ${runtime}`, `Files of ${repository} are read and committed with your own: without one, nobody knows what you may.`, way)];
  }
  const [folder, file] = ["Folder", "File"].map((name) => part("section", "", { class: "panel source", "aria-label": `${name} of ${title}`, tabindex: "0" }));
  await list({ runtime, integration, repository, revision, why: none, folder, file }, path);
  return [part("div", "", { class: "halves" }, folder, file)];
});

export function start() {
  addEventListener("beforeunload", (event) => { if (document.querySelector("[data-unsaved]")) event.preventDefault(); });
  begin();
}

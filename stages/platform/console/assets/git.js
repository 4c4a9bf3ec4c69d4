// Somebody's own Git token at a runtime.
import { asked, columns, line } from "./asked.js";
import { button, empty, field, outward, part, propose } from "./dialog.js";
import { ask } from "./proxy.js";

const day = (at) => new Date(at).toLocaleDateString();
const NAMES = { BITBUCKET: "Bitbucket Cloud", BITBUCKET_SERVER: "Bitbucket Server", GERRIT: "Gerrit", GITEA: "Gitea", GITHUB: "GitHub", GITLAB: "GitLab" };

// Whoever consents does so at the provider, whose page ends with a line for here.
function connect({ runtime, again }, { name }) {
  propose({
    title: `Connect with ${name}`,
    verb: "Connect",
    what: "You consent at the provider, in a page of its own. The line that it ends with is brought back here: it makes the token yours.",
    wait: `Asking ${runtime}…`,
    look: async (body) => {
      const { beginGitAuth } = await ask(runtime, "beginGitAuth", { name });
      body.append(part("p", "", {}, outward("Open the provider's page", beginGitAuth.url), " within 10 minutes."));
      field(body, "The line that it shows", { name: "line" });
    },
    act: async (form) => {
      const args = { name, line: form.get("line").trim() };
      await ask(runtime, "finishGitAuth", { args });
      return `${name} has your token`;
    },
    after: again,
  });
}

function set({ runtime, again }, { name, provider }) {
  propose({
    title: `Your token of ${name}`,
    verb: "Keep it",
    what: `Make a token at a page of ${NAMES[provider] ?? provider}. Its provider is asked whether it may enough; then it is kept in ${runtime}, sealed, and nowhere else.`,
    look: async (body) => {
      field(body, "Token", { type: "password", autocomplete: "new-password", name: "token" });
      if (provider === "BITBUCKET") field(body, "Whose it is: a user name, or an address with an API token", { name: "username" });
    },
    act: async (form) => {
      const args = { name, token: form.get("token").trim(), username: form.get("username")?.trim() || null };
      await ask(runtime, "registerToGitIntegration", { args });
      return `${name} has your token`;
    },
    after: again,
  });
}

function forget({ runtime, again }, { name }) {
  propose({
    title: `Forget your token of ${name}`,
    verb: "Forget it",
    what: `${runtime} forgets your token of ${name}: nothing is read or committed with it any more. At its provider it stays until you take it back there.`,
    act: async () => {
      await ask(runtime, "deregisterFromGitIntegration", { name });
      return `${name} has forgotten your token`;
    },
    after: again,
  });
}

async function check({ runtime, said }, { name }) {
  said.className = "mute";
  said.textContent = `Asking the provider of ${name}…`;
  try {
    const { gitToken } = await ask(runtime, "gitToken", { name });
    said.textContent = `The provider of ${name} takes your token, as that of ${gitToken.username}${gitToken.expiresAt ? `, until ${day(gitToken.expiresAt)}` : ""}.`;
  } catch (error) {
    said.className = "bad";
    said.textContent = error.message;
  }
}

function state(own) {
  if (!own) return ["none of yours", "mute"];
  if (!own.isValid) return ["cannot be opened any more: set it again", "bad"];
  const left = own.expiresAt ? Date.parse(own.expiresAt) - Date.now() : Infinity;
  if (left <= 0) return ["ended", "bad"];
  return [left === Infinity ? "yours" : `yours, until ${day(own.expiresAt)}`, left < 14 * 86_400_000 ? "warn" : ""];
}

function row(body, at, one) {
  const own = one.users.find(({ userId }) => userId === document.body.dataset.user);
  const [text, type] = state(own);
  const name = part("span", `${one.name} `, {}, part("span", NAMES[one.provider] ?? one.provider, { class: "mute" }));
  const box = part("span", "", { class: "acts" });
  const act = (title, why, what, of) => box.append(button(title, why, () => what(at, one), { "aria-label": `${of} ${one.name}` }));
  if (one.provider === "GITHUB") act("Connect…", at.why, connect, "Connect with");
  act("Set a token…", at.why, set, "Set a token of");
  if (own) act("Check", "", check, "Check your token of");
  if (own) act("Forget…", at.why, forget, "Forget your token of");
  line(body, name, `${one.apiUrl}${one.sharingPolicy === "ACCOUNT_ADMINS" ? ", for admins" : ""}`, part("span", text, { class: type }), box);
}

const kept = (runtime) => `They are kept by the app proxy of ${runtime}, and people's tokens with them.`;

export const start = asked("git", "Git integrations cannot be read now", kept, async ({ why }, { runtime }, again) => {
  const { gitIntegrations: all } = await ask(runtime, "gitIntegrations");
  if (!all.length) return [empty(`${runtime} has no Git integration`, "An admin adds one for each provider that people commit to, such as: gitops-runtime git integration add --provider github")];
  const [table, body] = columns(["integration", "provider's API", "your token", "acts"], "acts");
  table.className = "accounts";
  const said = part("p", "", { class: "mute", role: "status" });
  for (const one of all) row(body, { runtime, why, said, again }, one);
  return [table, said];
});

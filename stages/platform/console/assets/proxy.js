import { signedOut, signIn } from "./swap.js";

// Asks the app proxy of a runtime as whoever is signed in: the platform knows the query by its name.
export async function send(runtime, documentId, variables, more = {}) {
  const url = `/2.0/api/runtimes/${encodeURIComponent(runtime)}/app-proxy/graphql`;
  const headers = { "content-type": "application/json", accept: "application/json", ...more.headers };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ documentId, variables }), signal: more.signal });
  if (answer.status === 401 && await signedOut()) throw Object.assign(new Error("You are signed out"), { to: signIn() });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the platform answered ${answer.status}`);
  return answer;
}

export async function ask(runtime, name, variables = {}) {
  const { data, errors } = await (await send(runtime, name, variables)).json();
  if (errors?.length) throw new Error(errors.map((error) => error.message).join("\n"));
  return data;
}

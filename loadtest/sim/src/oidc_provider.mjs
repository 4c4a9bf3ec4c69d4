// A provider of OpenID Connect for tests: npm's `oidc-provider`, with people, keys and faults that a test sets by `POST /test`.
//
//   node oidc_provider.mjs FOLDER PORT REDIRECT [CERTIFICATE KEY]
//
// FOLDER holds the package, PORT 0 takes any, REDIRECT is where the platform is come back to. With a certificate for localhost
// and its key, files in PEM, it speaks TLS. Prints its issuer once it listens.
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, port, redirect, certificateFile, keyFile] = process.argv.slice(2);
const entry = createRequire(`${folder}/`).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(entry));

let keys = 0;
// The key is exported of a copy: Node 20 waits for itself for ever where what generated a key is collected while that very key is
// exported.
const key = () => {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  keys += 1;
  return { ...createPrivateKey(privateKey).export({ format: 'jwk' }), kid: `key-${keys}`, use: 'sig', alg: 'RS256' };
};

// What a test sets: claims by login, the next ID token's other claims or key or what it says that it is signed by, what else stands
// beside it, how long a code is good, whether it is away, the status by which it refuses to say who somebody is, whether it says that
// by a token that it signed.
const people = new Map();
const set = { twist: null, forge: false, alg: null, answer: null, code: 60, away: false, userinfo: 0, signs: false };
let current = key();
let provider;
let issuer;

const signed = (header, payload, jwk) => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${sign('sha256', text, createPrivateKey({ key: jwk, format: 'jwk' })).toString('base64url')}`;
};

// The ID token that is answered with other claims, or signed by a key that is nobody's; and what a test sets of other answers.
const twisted = async (ctx, next) => {
  await next();
  if (set.signs && ctx.path === '/me' && ctx.body?.sub) {
    ctx.body = signed({ alg: 'RS256', kid: current.kid }, { ...ctx.body, iss: issuer, aud: 'platform' }, current);
    ctx.type = 'application/jwt';
    return;
  }
  if (!ctx.path.endsWith('/token') || !ctx.body?.id_token) return;
  ctx.body = { ...ctx.body, ...set.answer };
  if (!(set.twist || set.forge || set.alg)) return;
  const [header, payload] = ctx.body.id_token.split('.').slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url')));
  const by = set.forge ? { ...key(), kid: header.kid } : current;
  const told = set.alg ? { ...header, alg: set.alg } : header;
  ctx.body = { ...ctx.body, id_token: signed(told, { ...payload, ...set.twist }, by) };
};

const build = () => {
  provider = new Provider(issuer, {
    clients: [{ client_id: 'platform', client_secret: 'a secret of the platform', redirect_uris: [redirect] }],
    claims: {
      openid: ['sub'], profile: ['preferred_username', 'name', 'updated_at'], email: ['email', 'email_verified'], groups: ['groups'],
    },
    cookies: { keys: ['for tests alone'] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    jwks: { keys: [current] },
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
    scopes: ['openid', 'profile', 'email', 'groups'],
    ttl: { AuthorizationCode: () => set.code },
  });
  provider.use(twisted);
};

const body = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
};

const form = `<!doctype html><html lang="en"><title>Example Identity</title><h1>Example Identity</h1>
<form method="post"><label>Login <input name="login" autofocus></label><button>Continue</button></form>`;

const answer = async (request, response) => {
  try {
    if (request.url === '/test') {
      const { person, rotate, ...rest } = JSON.parse(await body(request));
      if (person) people.set(person.login, person.claims);
      Object.assign(set, rest);
      if (rotate) {
        current = key();
        build();
      }
      response.end('set\n');
    } else if (set.away) {
      response.writeHead(503).end('down for maintenance\n');
    } else if (set.userinfo && request.url.startsWith('/me')) {
      response.writeHead(set.userinfo).end('{"error":"insufficient_scope"}');
    } else if (request.url.startsWith('/interaction/') && request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(form);
    } else if (request.url.startsWith('/interaction/')) {
      const login = new URLSearchParams(await body(request)).get('login');
      const result = people.has(login) ? { login: { accountId: login } } : { error: 'access_denied', error_description: 'nobody' };
      await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    } else {
      await provider.callback()(request, response);
    }
  } catch (error) {
    console.error(error);
    response.writeHead(500).end('broken\n');
  }
};
const tls = certificateFile && { cert: readFileSync(certificateFile), key: readFileSync(keyFile) };
const server = tls ? createTlsServer(tls, answer) : createServer(answer);

server.listen(Number(port), '127.0.0.1', () => {
  issuer = `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${server.address().port}`;
  build();
  console.log(`issuer ${issuer}`);
});

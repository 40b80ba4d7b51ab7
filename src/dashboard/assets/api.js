// Requests to the scheduler that served the pages, and what a refusal says.

import { signal } from './ui.js';
import { navigate, route } from './route.js';

const BASE = '/scheduler/v1/';
const TIMEOUT_MS = 30_000;

/** Who is logged in, an AccountView; null: not known yet. */
export const me = signal(null);
export const isAdmin = () => me.value?.role === 'admin';

/** A refusal: what is wrong, and what to do about it. */
export class Refused extends Error {
  constructor(status, { code = 'unreachable', message, hint = '' }) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** A query text of an object: lists are repeated, empty values left out. */
export function query(values) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null && one !== '') pairs.append(name, one);
    }
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

/** The page on which somebody logs in, and comes back from. */
export const loginAddress = () => `/ui/login${query({ next: location.pathname + location.search })}`;

async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  const body = said.error ?? (Array.isArray(said) ? said[0] : said);
  return new Refused(response.status, { ...body, message: body.message ?? `the scheduler answered ${response.status}` });
}

/** Asks and answers the response; refusals are thrown. `text`: a body that is sent as it is. */
export async function ask(path, options = {}) {
  const { method = 'GET', body, text, signal: stop, headers, stream } = options;
  const limits = stream ? [] : [AbortSignal.timeout(TIMEOUT_MS)];
  if (stop) limits.push(stop);
  let response;
  try {
    response = await fetch(path.startsWith('/') ? path : BASE + path, {
      method,
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: text ?? (body === undefined ? undefined : JSON.stringify(body)),
      signal: limits.length > 1 ? AbortSignal.any(limits) : limits[0],
      credentials: 'same-origin',
    });
  } catch (error) {
    if (stop?.aborted) throw error;
    throw new Refused(0, { message: 'the scheduler does not answer', hint: 'The page tries again by itself when the lab is back.' });
  }
  if (response.ok) return response;
  const refused = await refusal(response);
  if (refused.status === 401 && route.peek().page !== 'login') navigate(loginAddress(), { replace: true });
  throw refused;
}

export const getJson = async (path, options) => (await ask(path, options)).json();
export const postJson = async (path, body, options) => (await ask(path, { ...options, method: 'POST', body })).json();

/** Learns who is logged in. */
export async function learnMe() {
  me.value = await getJson('whoami');
}

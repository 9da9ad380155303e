// Requests to the service, and its errors.

const JOBS = "/api/training/jobs";

export class Refused extends Error {
  constructor(status, parts) {
    super([parts.what, parts.where && `at ${parts.where}`].filter(Boolean).join(" ") +
          (parts.why ? `: ${parts.why}` : "") + (parts.next ? `; ${parts.next}` : ""));
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  if (answer.ok) return answer;
  let parts = { what: `${answer.status} ${answer.statusText}` };
  try {
    parts = (await answer.json()).error;
  } catch { /* not a document of ours */ }
  throw new Refused(answer.status, parts);
}

const json = async (path, options) => (await ask(path, options)).json();

export const machine = () => json("/api/machine");
export const jobs = (query = "") => json(JOBS + query);
export const job = (id) => json(`${JOBS}/${id}`);
export const artifacts = (id) => json(`${JOBS}/${id}/artifacts`);
export const act = (id, verb) => json(`${JOBS}/${id}/${verb}`, { method: "POST" });
export const remove = (id) => ask(`${JOBS}/${id}`, { method: "DELETE" });
export const eventsOf = (id) => new EventSource(`${JOBS}/${id}/events`);
export const reportOf = (id) => `${JOBS}/${id}/report`;

export const submit = (request) => json(JOBS, {
  method: "POST", headers: { "Content-Type": "application/json" },
  body: JSON.stringify(request) });

/** The log from a byte on: its text, and where the next one begins. */
export async function log(id, from) {
  const answer = await ask(`${JOBS}/${id}/logs?from=${from}`);
  return { text: await answer.text(), next: Number(answer.headers.get("X-Log-Bytes")) };
}

/** Makes the token a cookie, which scripts cannot read. */
export const signIn = (token) => json("/api/session", {
  method: "POST", headers: { Authorization: `Bearer ${token}` } });

// Which view is shown: the part of the address after "#".

import { element, fill, say } from "./element.js";
import * as job from "./job.js";
import * as list from "./list.js";
import { bytes, short } from "./numbers.js";
import * as service from "./service.js";

const content = document.getElementById("content");
const place = document.getElementById("machine");
let leave = () => {};
let facts = null;

function showMachine() {
  const fact = (name, value) => element("span", { "data-key": name }, `${name} `,
    element("b", {}, value));
  fill(place, fact("running", `${facts.counts.running + facts.counts.cancelling} of ${facts.slots}`),
    fact("queued", String(facts.counts.queued)),
    fact("load", `${short(facts.load)} / ${facts.cpus} CPUs`),
    fact("free memory", `${bytes(facts.memory_free_bytes)} of ${bytes(facts.memory_bytes)}`),
    fact("free disk", bytes(facts.disk_free_bytes)),
    ...facts.gpus.map((gpu) => fact(`GPU ${gpu.index}`,
      `${gpu.utilisation_percent ?? "n/a"} % · ${gpu.memory_used_mib ?? "n/a"} of ` +
      `${gpu.memory_total_mib ?? "n/a"} MiB`)));
}

async function lookAtMachine() {
  try {
    facts = await service.machine();
    showMachine();
  } catch (error) { if (error.status === 401) return askForToken(); }
  setTimeout(lookAtMachine, 5000);
}

function askForToken(why = "") {
  leave();
  leave = () => {};
  facts = null;
  const token = element("input", { type: "password", required: true, autocomplete: "off" });
  content.replaceChildren(element("form", { class: "sign", onsubmit: async (event) => {
    event.preventDefault();
    await begin(token.value.trim());
  } }, element("h1", {}, "Sign in"),
  element("p", { class: "dim" }, why || "penstock serve printed an address with a token, " +
    "which is also in its token file."),
  element("label", {}, "Token", token),
  element("button", { type: "submit", class: "first" }, "Sign in")));
  token.focus();
}

function route() {
  if (facts === null) return;
  const [view, ...ids] = location.hash.replace(/^#\/?/, "").split("/");
  if (view === "content") return;  // the link that skips the header
  leave();
  const known = ids.every((id) => /^[0-9a-f]{12}$/.test(id));
  document.title = "Trainings - Penstock";
  if (view === "job" && ids.length === 1 && known) leave = job.show(content, facts, ids[0]);
  else if (view === "compare" && ids.length === 2 && known)
    leave = job.showTwo(content, facts, ...ids);
  else if (view === "sweep" && ids.length === 1 && known)
    leave = list.showSweep(content, facts, ids[0]);
  else leave = list.show(content, facts);
  window.scrollTo(0, 0);
}

async function begin(token) {
  try {
    if (token) await service.signIn(token);
    facts = await service.machine();
  } catch (error) {
    if (error.status === 401) return askForToken(token ? "This token is not known here." : "");
    say(error.message);
    setTimeout(() => begin(""), 5000);
    return;
  }
  showMachine();
  setTimeout(lookAtMachine, 5000);
  route();
}

addEventListener("hashchange", route);
// A token in the address is used once, and leaves the history.
const given = /^#[\w-]{16,}$/.test(location.hash) ? location.hash.slice(1) : "";
if (given) history.replaceState(null, "", location.pathname);
begin(given);

// All jobs: what runs, what waits, what has ended.

import { element, fill, say } from "./element.js";
import { bytes, limit, lossOf, percent, share, short, whole, lasted } from "./numbers.js";
import * as service from "./service.js";
import { newTraining } from "./submit.js";

const STATUSES = ["all", "queued", "running", "done", "failed", "cancelled"];

export function chip(status) {
  return element("span", { class: `chip ${status}` }, status);
}

/** Buttons for what can be done with a job now. */
export function actions(job, after) {
  const button = (text, verb, label) => element("button", { type: "button", "data-key": text,
    "aria-label": `${label} ${job.job_name}`,
    onclick: async () => {
      try {
        await verb(job.id);
        say(`${label}: ${job.job_name}`);
        after();
      } catch (error) { say(error.message); }
    } }, text);
  if (["queued", "running"].includes(job.status))
    return [button("Cancel", (id) => service.act(id, "cancel"), "Cancel")];
  if (job.status === "cancelling")
    return [button("End at once", (id) => service.act(id, "cancel"), "End at once")];
  if (["failed", "cancelled"].includes(job.status))
    return [button("Resume", (id) => service.act(id, "resume"), "Resume")];
  return [];
}

export function track(job) {
  const bar = element("div", { class: `track of_${job.status}`, role: "progressbar",
    "aria-label": `Progress of ${job.job_name}`, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * share(job)) }, element("i"));
  bar.firstChild.style.width = `${100 * share(job)}%`;
  return bar;
}

function row(job, after, chosen, choose) {
  const progress = job.progress;
  const compare = element("input", { type: "checkbox", "aria-label": `Compare ${job.job_name}`,
    onchange: (event) => choose(job.id, event.target.checked) });
  compare.checked = chosen.has(job.id);
  const steps = progress.steps
    ? `${whole(progress.steps_taken)} / ${whole(progress.steps)}`
    : progress.steps_taken ? whole(progress.steps_taken) : "";
  return element("tr", {},
    element("td", { class: "name" }, compare, " ", element("a", { href: `#/job/${job.id}` }, job.job_name),
      element("div", { class: "dim" }, job.recipe, job.parent ? " · " : "",
        job.parent ? element("a", { href: `#/sweep/${job.parent}` }, "sweep") : "",
        job.reason && job.status !== "done" ? ` · ${job.reason}` : "")),
    element("td", {}, chip(job.status)),
    element("td", { class: "bar" }, job.attempt > 0 ? track(job) : "",
      element("div", { class: "dim" }, steps && `step ${steps}`)),
    element("td", { "data-of": "loss" }, job.attempt > 0 ? short(lossOf(job)) : ""),
    element("td", { "data-of": "utilisation" }, job.attempt > 0 ? percent(progress.au) : "",
      element("div", { class: "dim" }, limit(job.verdict))),
    element("td", { "data-of": "memory" }, memory(progress)),
    element("td", { class: "acts" }, ...actions(job, after)));
}

const memory = (progress) => progress.device_bytes ? `${bytes(progress.device_bytes)} GPU`
  : progress.resident_bytes ? bytes(progress.resident_bytes) : "";

/** Shows the list in `place` until the function that it returns is called. */
export function show(place, facts) {
  let status = "all", gone = false, timer = 0;
  const chosen = new Set();
  const tabs = element("div", { class: "tabs", role: "group", "aria-label": "Status" });
  const body = element("tbody");
  const empty = element("p", { class: "notice", hidden: true },
    "No job yet. Start one with New training, penstock submit, or POST /api/training/jobs.");
  const table = element("table", { class: "jobs" },
    element("thead", {}, element("tr", {}, ...["Training", "Status", "Progress", "Loss",
      "Utilisation", "Memory", ""].map((name) => element("th", { scope: "col" },
        name || element("span", { class: "skip" }, "Actions"))))), body);
  const compare = element("button", { type: "button", disabled: true, onclick: () => {
    location.hash = `#/compare/${[...chosen].slice(0, 2).join("/")}`; } }, "Compare two");
  const form = newTraining(facts, () => look());
  const more = element("button", { type: "button", class: "first", "aria-expanded": "false",
    onclick: () => {
      form.hidden = !form.hidden;
      more.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.querySelector("input").focus();
    } }, "New training");
  if (facts.role !== "operator") more.hidden = true;
  const choose = (id, on) => {
    if (on) chosen.add(id); else chosen.delete(id);
    compare.disabled = chosen.size !== 2;
  };
  let before = "";
  async function look() {
    clearTimeout(timer);
    try {
      const found = await service.jobs(status === "all" ? "" : `?status=${status}`);
      if (gone) return;
      const now = JSON.stringify(found);
      if (now !== before) render(found);
      before = now;
    } catch (error) { say(error.message); }
    if (!gone) timer = setTimeout(look, 2000);
  }
  function render(found) {
    fill(tabs, STATUSES.map((name) => element("button", { type: "button", "data-key": name,
      "aria-pressed": String(name === status) }, name === "all" ? "all"
        : `${name} ${found.counts[name] + (name === "running" ? found.counts.cancelling : 0)}`)));
    const focus = document.activeElement?.getAttribute("aria-label");
    body.replaceChildren(...found.jobs.map((job) => row(job, look, chosen, choose)));
    if (focus) body.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
    empty.hidden = found.jobs.length > 0;
    table.hidden = found.jobs.length === 0;
  }
  tabs.addEventListener("click", (event) => {
    if (event.target.dataset.key) { status = event.target.dataset.key; before = ""; look(); }
  });
  place.replaceChildren(
    element("div", { class: "row" }, element("h1", {}, "Trainings"), compare, more),
    form, tabs, table, empty);
  look();
  return () => { gone = true; clearTimeout(timer); };
}

/** The jobs of a sweep, in a table that sorts by its columns. */
export function showSweep(place, facts, parent) {
  let gone = false, timer = 0, by = "loss", up = true;
  const head = element("tr"), body = element("tbody");
  place.replaceChildren(element("h1", {}, "Sweep"), element("div", { class: "wide", tabindex: 0,
    role: "region", "aria-label": "Jobs of the sweep" },
    element("table", {}, element("thead", {}, head), body)));
  async function look() {
    clearTimeout(timer);
    try { render((await service.jobs(`?parent=${parent}&most=1000`)).jobs); }
    catch (error) { say(error.message); }
    if (!gone) timer = setTimeout(look, 3000);
  }
  function render(jobs) {
    const varied = [...new Set(jobs.flatMap((job) => Object.keys(job.config)))].filter((key) =>
      new Set(jobs.map((job) => JSON.stringify(job.config[key]))).size > 1);
    const columns = [...varied.map((key) => [key, (job) => job.config[key]]),
      ["status", (job) => job.status], ["loss", (job) => lossOf(job)],
      ["utilisation", (job) => job.progress.au],
      ["time", (job) => job.started ? (job.ended ?? Date.now() / 1000) - job.started : undefined]];
    const value = columns.find(([name]) => name === by)?.[1] ?? columns.at(-1)[1];
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    };
    const focus = document.activeElement?.dataset.key;
    head.replaceChildren(element("th", { scope: "col" }, "job"), ...columns.map(([name]) =>
      element("th", { scope: "col", "aria-sort": name === by ? (up ? "ascending" : "descending") : null },
        element("button", { type: "button", class: "sort", "data-key": name, onclick: () => {
          up = name === by ? !up : true; by = name; render(jobs); } },
        name + (name === by ? (up ? " ↑" : " ↓") : "")))));
    if (focus) head.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    body.replaceChildren(...[...jobs].sort(order).map((job) => element("tr", {},
      element("td", {}, element("a", { href: `#/job/${job.id}` }, job.id)),
      ...varied.map((key) => element("td", {}, JSON.stringify(job.config[key]))),
      element("td", {}, chip(job.status)), element("td", {}, short(lossOf(job))),
      element("td", {}, percent(job.progress.au)),
      element("td", {}, job.started ? lasted((job.ended ?? Date.now() / 1000) - job.started) : ""))));
  }
  look();
  return () => { gone = true; clearTimeout(timer); };
}

// One job while it waits, runs, and when it has ended; and two side by side.

import { chart, parts } from "./charts.js";
import { element, fill, say } from "./element.js";
import { actions, chip, track } from "./list.js";
import { at, bytes, lasted, limit, lossOf, percent, short, whole } from "./numbers.js";
import * as service from "./service.js";

const ENDED = ["done", "failed", "cancelled"];

function figure(name, value, about = "") {
  return element("div", { class: "figure", "data-key": name }, element("b", {}, value),
    element("span", {}, name + (about ? ` · ${about}` : "")));
}

function figures(job) {
  const progress = job.progress;
  const epochs = progress.epochs ? `${progress.epoch + 1} / ${progress.epochs}` : "n/a";
  const wall = job.started ? lasted((job.ended ?? Date.now() / 1000) - job.started) : "n/a";
  return [
    progress.epochs ? figure("epoch", epochs) : figure("steps", whole(progress.steps_taken)),
    figure("loss", short(lossOf(job)), "held-out rows if there are any"),
    figure("samples per second", whole(progress.samples_per_s)),
    figure("utilisation", percent(progress.au), limit(job.verdict)),
    progress.device_bytes ? figure("GPU memory", bytes(progress.device_bytes))
      : figure("memory", bytes(progress.resident_bytes ??
        progress.last_epoch?.resident_bytes_max)),
    figure("time", wall)];
}

/** A change that would help: "train.checkpoint_every_steps = 50 would gain 6 %". */
function advice(action) {
  if (!action.knob) return "";
  return `${action.knob} = ${JSON.stringify(action.to)} would gain ` +
    `${percent(action.predicted_gain)}` + (action.cost ? `; it costs ${action.cost}` : "");
}

function sentence(verdict) {
  if (!verdict) return null;
  const first = (verdict.actions ?? [])[0];
  const next = first ? advice(first) : verdict.no_action;
  return element("div", { class: "action" + (verdict.limit === "compute" ? "" : " data"),
    "data-key": "verdict" },
    element("b", {}, `${limit(verdict) || "not known yet"}: `), verdict.cause ?? "",
    element("p", { class: "dim" }, verdict.because ?? ""),
    next ? element("p", {}, String(next)) : null);
}

const points = (epochs, key) => epochs.map((row) => [row.epoch + 1, row[key]]);

function curves(epochs) {
  const metrics = [...new Set(epochs.flatMap((row) => Object.keys(row)))]
    .filter((key) => key.startsWith("val_") && key !== "val_loss");
  return [
    chart("Loss", [{ name: "train", kind: "train", points: points(epochs, "train_loss") },
      { name: "held-out", kind: "val", points: points(epochs, "val_loss") }]),
    ...metrics.slice(0, 3).map((key) => chart(key.slice(4),
      [{ name: `held-out ${key.slice(4)}`, kind: "other", points: points(epochs, key) }]))];
}

/** Keeps the end of the log in view, unless it is scrolled up. */
function followLog(id, place) {
  let next = 0, gone = false, timer = 0;
  async function look() {
    try {
      const more = await service.log(id, next);
      if (gone) return;
      next = more.next;
      if (more.text) {
        const below = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
        place.textContent = (place.textContent + more.text).slice(-400000);
        if (below) place.scrollTop = place.scrollHeight;
      }
    } catch (error) { if (!gone) say(error.message); }
    if (!gone) timer = setTimeout(look, 2000);
  }
  look();
  return () => { gone = true; clearTimeout(timer); };
}

/** Fills `place` with a job, and keeps it up to date. */
function watch(place, id, facts, brief) {
  const heading = element("h1"), status = element("span"), acts = element("span", { class: "row" });
  const about = element("p", { class: "dim" }), bar = element("div"), cause = element("div");
  const wrong = element("div"), numbers = element("div", { class: "figures" });
  const lines = element("div"), mapped = element("div"), report = element("div");
  const files = element("div");
  const log = element("pre", { tabindex: 0, role: "log", "aria-label": "Log", "aria-live": "off" });
  const frame = element("iframe", { title: "Report of the run" });
  let job = null, epochs = [], gone = false, listening = null, stopLog = () => {};
  place.replaceChildren(
    element("div", { class: "row" }, heading, status, acts), about, bar, wrong, numbers, cause,
    element("h2", {}, "Learning"), lines,
    ...(brief ? [] : [element("h2", {}, "Log"), log, report, files,
      element("h2", {}, "What became of the settings"), mapped]));
  function render() {
    heading.textContent = job.job_name;
    document.title = `${job.job_name} (${job.status}) - Penstock`;
    fill(status, chip(job.status));
    const focused = acts.contains(document.activeElement);
    const buttons = facts.role === "operator" ? actions(job, load) : [];
    if (acts.textContent !== buttons.map((one) => one.textContent).join("")) {
      acts.replaceChildren(...buttons);
      if (focused) (buttons[0] ?? heading).focus();
    }
    about.textContent = [job.id, job.recipe, `submitted ${at(job.submitted)}`,
      job.attempt > 1 ? `attempt ${job.attempt}` : "", job.reason,
      job.recipe_changed ? "the recipe has changed since" : ""].filter(Boolean).join(" · ");
    bar.replaceChildren(track(job));
    fill(numbers, ...figures(job));
    const shares = parts(job.progress);
    cause.replaceChildren(...[sentence(job.verdict), shares].filter(Boolean));
    fill(lines, ...curves(epochs));
    wrong.replaceChildren(...(job.error ? [element("div", { class: "action failed" },
      element("b", {}, `${job.error.what} `), element("span", {}, job.error.why),
      element("p", { class: "dim" }, `${job.error.code}: ${job.error.next}`))] : []));
  }
  function renderOnce() {
    mapped.replaceChildren(element("div", { class: "wide", tabindex: 0, role: "region",
      "aria-label": "Settings" }, element("table", {}, element("thead", {}, element("tr", {},
      ...["key", "value", "became"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...job.mapped.map((key) => element("tr", {},
      element("td", {}, key.key), element("td", { class: "why" }, JSON.stringify(key.value)),
      element("td", { class: "why" }, key.settings.join(", ") || "not used",
        key.why ? element("div", { class: "dim" }, key.why) : null)))))));
  }
  async function renderEnd() {
    if (brief || !job.attempt) return;
    const found = (await service.artifacts(id)).artifacts;
    files.replaceChildren(element("h2", {}, "Files"), element("ul", {}, ...found.map((file) =>
      element("li", {}, element("a", { href: file.link, download: "" }, file.name),
        ` ${bytes(file.bytes)}`))));
    if (found.some((file) => file.name === "report.html")) {
      frame.src = service.reportOf(id);
      report.replaceChildren(element("h2", {}, "Report"), frame);
    } else report.replaceChildren();
  }
  async function load() {
    try {
      job = await service.job(id);
      if (gone) return;
      render();
      renderOnce();
      listen();
      if (ENDED.includes(job.status)) {
        hangUpLater();
        await renderEnd();
      }
    } catch (error) { say(error.message); }
  }
  function listen() {
    if (listening) return;
    epochs = [];
    listening = service.eventsOf(id);
    const on = (kind, take) => listening.addEventListener(kind, (event) => {
      take(JSON.parse(event.data));
      soon();
    });
    on("epoch", (row) => {
      epochs = [...epochs.filter((one) => one.epoch < row.epoch), row];
      job.progress.last_epoch = row;
    });
    on("progress", (progress) => {
      job.progress = { ...job.progress, ...progress, ...progress.numbers };
    });
    on("verdict", (verdict) => { job.verdict = verdict; });
    on("state", (state) => {
      // The first events tell what the job has been before.
      if (state.n <= job.states.at(-1).n) return;
      job.states.push(state);
      job.status = state.status;
      job.reason = state.reason;
      if (ENDED.includes(state.status)) { hangUp(); load(); }
    });
  }
  let waits = 0;
  const soon = () => { waits ||= requestAnimationFrame(() => { waits = 0; if (!gone) render(); }); };
  // A browser would connect again to what has come to its end.
  const hangUpLater = () => setTimeout(hangUp, 3000);
  const hangUp = () => { listening?.close(); listening = null; };
  load();
  if (!brief) stopLog = followLog(id, log);
  return () => { gone = true; hangUp(); stopLog(); };
}

export const show = (place, facts, id) => watch(place, id, facts, false);

export function showTwo(place, facts, first, second) {
  const [left, right] = [element("div"), element("div")];
  place.replaceChildren(element("div", { class: "two" }, left, right));
  const ends = [watch(left, first, facts, true), watch(right, second, facts, true)];
  return () => ends.forEach((end) => end());
}

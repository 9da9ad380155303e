// How numbers are written.

const is = (value) => typeof value === "number" && Number.isFinite(value);

export const short = (value) => !is(value) ? "n/a"
  : value === 0 ? "0"
  : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2)
  : String(Number(value.toPrecision(4)));

export const whole = (value) => is(value) ? Math.round(value).toLocaleString("en-US") : "n/a";

export const percent = (share) => is(share) ? `${Math.round(100 * share)} %` : "n/a";

export function bytes(count) {
  if (!is(count)) return "n/a";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) { count /= 1024; at += 1; }
  return `${at === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[at]}`;
}

export function lasted(seconds) {
  if (!is(seconds) || seconds < 0) return "n/a";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min`;
}

export const at = (seconds) => is(seconds)
  ? new Date(1000 * seconds).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })
  : "n/a";

/** How far a job has come, from 0 to 1. */
export function share(job) {
  if (job.status === "done") return 1;
  const { steps_taken: taken, steps } = job.progress;
  return is(taken) && is(steps) && steps > 0 ? Math.min(1, taken / steps) : 0;
}

/** What limits it, in a word or two. */
export function limit(verdict) {
  const words = { compute: "compute-bound", data: "waits for data", input: "waits for data",
    wait_data: "waits for data", copy: "waits for copies", host: "host-bound",
    sync: "synchronises", unknown: "" };
  if (!verdict || !verdict.limit) return "";
  return words[verdict.limit] ?? verdict.limit;
}

/** Of a run: the metric that was validated, or the loss. */
export function lossOf(job) {
  const progress = job.progress;
  return progress.metrics?.val?.loss ?? progress.last_epoch?.val_loss ??
    progress.metrics?.train?.loss ?? progress.loss;
}

// Lines over epochs.

import { drawn, element } from "./element.js";
import { short } from "./numbers.js";

const WIDTH = 600, HEIGHT = 140, EDGE = 8, MOST = 600;

/** `series`: [{name, kind, points: [[x, y], ...]}]; kind is a class. */
export function chart(title, series) {
  const known = series.map((one) => ({ ...one, points: thinned(one.points) }))
    .filter((one) => one.points.length > 0);
  if (known.length === 0)
    return element("p", { class: "dim", "data-key": title }, `${title}: not known yet`);
  const xs = known.flatMap((one) => one.points.map((point) => point[0]));
  const ys = known.flatMap((one) => one.points.map((point) => point[1]));
  const x = scale(Math.min(...xs), Math.max(...xs), EDGE, WIDTH - EDGE);
  const y = scale(Math.min(...ys), Math.max(...ys), HEIGHT - EDGE, EDGE);
  const last = known.map((one) => `${one.name} ${short(one.points.at(-1)[1])}`).join(", ");
  return element("figure", { class: "curve", "data-key": title },
    element("ul", { class: "legend" }, ...known.map((one) => element("li", {},
      element("i", { class: one.kind }), `${one.name} ${short(one.points.at(-1)[1])}`))),
    drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none", role: "img", "aria-label": `${title}; last: ${last}` },
      ...known.map((one) => drawn("polyline", { class: one.kind,
        points: (one.points.length === 1 ? [one.points[0], one.points[0]] : one.points)
          .map(([a, b], n) => `${(x(a) + (one.points.length === 1 ? 4 * n : 0)).toFixed(1)},${y(b).toFixed(1)}`)
          .join(" ") }))),
    element("div", { class: "axis" },
      element("span", {}, `epoch ${Math.min(...xs)}`),
      element("span", {}, `${short(Math.min(...ys))} to ${short(Math.max(...ys))}`),
      element("span", {}, `epoch ${Math.max(...xs)}`)));
}

/** Not more points than the picture has columns. */
function thinned(points) {
  const known = points.filter(([, y]) => typeof y === "number" && Number.isFinite(y));
  const every = Math.ceil(known.length / MOST);
  return known.filter((_, n) => n % every === 0 || n === known.length - 1);
}

const scale = (low, high, from, to) => (value) =>
  high === low ? (from + to) / 2 : from + (value - low) / (high - low) * (to - from);

/** Where the time of a step goes. */
export function parts(numbers) {
  const names = { wait_data: "waiting for data", wait_copy: "waiting for copies",
    host: "host", sync: "synchronising" };
  const shares = [["compute", "computing", numbers.au],
    ...Object.entries(names).map(([key, name]) => [key, name, numbers[key]])]
    .filter(([, , share]) => typeof share === "number" && share >= 0.005);
  if (shares.length === 0) return null;
  const bar = element("div", { class: "parts", role: "img", "aria-label":
    "Time of a step: " + shares.map(([, name, share]) => `${name} ${Math.round(100 * share)} %`).join(", ") });
  for (const [key, , share] of shares) {
    const piece = element("i", { class: key });
    piece.style.width = `${100 * share}%`;
    bar.append(piece);
  }
  return element("div", { "data-key": "parts" }, bar, element("ul", { class: "legend" },
    ...shares.map(([key, name, share]) => element("li", {}, element("i", { class: key }),
      `${name} ${Math.round(100 * share)} %`))));
}

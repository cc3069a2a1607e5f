// The analysis page: scores of all models; segments, pairs and calibration of one.

import { ask, attempt, byId, element, interval, model, percent, showWarnings, titled } from "./common.js";

const SVG = "http://www.w3.org/2000/svg";
const CELL = 22;
const NAMES = window.innerWidth < 600 ? 130 : 250; // pixels for the names next to the map
const LONGEST = NAMES / 7; // characters of a name there
const PLOT = 360;
const LIKED = 1.1;     // times as likely as in all baskets, for an item to be named

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const decimal = (value, digits = 2) => (typeof value === "number" ? value.toFixed(digits) : value ?? "–");

// A table of columns [heading, value of a row, whether it is a number].
function table(id, columns, rows, caption) {
  const head = element("tr", {}, ...columns.map(([heading, , numeric]) =>
    element("th", { scope: "col", class: numeric ? "number" : undefined }, heading)));
  const body = rows.map((each) => element("tr", {}, ...columns.map(([, value, numeric], number) =>
    element(number ? "td" : "th", { scope: number ? undefined : "row", class: numeric ? "number" : undefined },
      String(value(each))))));
  byId(id).replaceChildren(element("caption", { class: "small" }, caption), element("thead", {}, head),
    element("tbody", {}, ...body));
}

function showScores(models) {
  const names = [...new Set(models.flatMap((each) => Object.keys(each.baselines ?? {})))];
  const columns = [
    ["Model", (each) => titled(each.title)],
    ["Items", (each) => each.n_items, true],
    ["Baskets", (each) => each.n_baskets ?? "–", true],
    ["Measured on", (each) => (each.on === "test" ? "held-out baskets" : "training baskets")],
    ["Log-likelihood", (each) => decimal(each.log_likelihood), true],
    ["Gain over independent items", (each) => decimal(each.gain), true],
    ["Percentile rank", (each) => decimal(each.percentile_rank, 1), true],
    ...names.map((name) => [`Rank of ${name}`, (each) => decimal(rank(each.baselines?.[name]), 1), true]),
  ];
  table("scores", columns, models, "Models and baselines");
}

const rank = (baseline) => (typeof baseline === "object" && baseline ? baseline.percentile_rank : baseline);

function showSegments(segments) {
  const cards = segments.map(({ share, expected_size: size, likes }, number) => {
    const bar = element("span");
    bar.style.width = percent(share);
    return element("li", {},
      element("h3", {}, `Segment ${number + 1}: ${percent(share)} of baskets`),
      element("div", { class: "share", "aria-hidden": "true" }, bar),
      element("p", { class: "small" }, `${decimal(size, 1)} items on average; more likely than in all baskets:`),
      element("ul", {}, ...likes.filter(({ ratio }) => ratio >= LIKED).map(({ item, ratio }) =>
        element("li", {}, `${item} (${decimal(ratio, 1)} times as likely)`))));
  });
  const none = element("li", {}, "A DPP has no segments.");
  byId("segments").replaceChildren(...(cards.length ? cards : [none]));
}

// Blue below independence, red above it; lifts of 1/4 and 4 are the ends of the scale.
function colour(lift) {
  const way = Math.max(-1, Math.min(1, Math.log2(Math.max(lift, 1e-6)) / 2));
  const end = way < 0 ? [33, 102, 172] : [214, 96, 77];
  const mixed = end.map((value) => Math.round(242 + (value - 242) * Math.abs(way)));
  return `rgb(${mixed.join(" ")})`;
}

const cut = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

function showMap({ items, lift }) {
  const n = items.length;
  const side = n * CELL;
  const about = `Heat map of ${n} items: lift of every pair. ` +
    "The strongest pairs are in the tables below.";
  const map = drawn("svg", { role: "img", "aria-label": about, width: NAMES + side + 4, height: side + 4,
    viewBox: `0 0 ${NAMES + side + 4} ${side + 4}` });
  items.forEach((item, row) => {
    const label = drawn("text", { x: NAMES - 6, y: row * CELL + 15, "text-anchor": "end" });
    label.textContent = cut(String(item));
    map.append(label);
    items.forEach((other, column) => {
      const here = drawn("rect", { x: NAMES + column * CELL, y: row * CELL, width: CELL - 1, height: CELL - 1, rx: 2,
        fill: row === column ? "#8a9099" : colour(lift[row][column]) });
      if (row !== column) {
        const words = drawn("title");
        words.textContent = `${item} and ${other}: ${decimal(lift[row][column])} times as often as under independence`;
        here.append(words);
      }
      map.append(here);
    });
  });
  byId("map").replaceChildren(n ? map : element("p", {}, "No pair differs from independence."));
}

function showPairs(id, pairs, caption) {
  const columns = [
    ["Item", (each) => each.first],
    ["Other item", (each) => each.second],
    ["Lift", (each) => decimal(each.lift), true],
    ["95% interval", (each) => interval(each), true],
  ];
  table(id, columns, pairs, caption);
}

function showCalibration(calibration) {
  const about = byId("calibration-about");
  byId("calibration").replaceChildren();
  byId("calibration-table").replaceChildren();
  if (!calibration?.rows?.length) {
    about.textContent = "Only models of fit-all have a calibration.";
    return;
  }
  const { rows, on } = calibration;
  about.textContent = "Probability that a basket with one item contains another, predicted and observed, on " +
    (on === "test" ? "held-out baskets." : "the training baskets.") + " On the line, predictions are calibrated.";
  byId("calibration").append(reliability(rows));
  table("calibration-table", [
    ["Predicted", (each) => decimal(each.predicted, 4), true],
    ["Observed", (each) => decimal(each.observed, 4), true],
    ["95% interval", (each) => interval(each, 4), true],
  ], rows, "Averages of groups of predictions");
}

// On logarithmic axes: most items are rare.
function reliability(rows) {
  const shown = rows.filter((each) => each.predicted > 0 && each.observed > 0);
  const values = shown.flatMap((each) => [each.predicted, each.observed]);
  const low = Math.floor(Math.log10(Math.min(...values, 0.1)));
  const place = (value) => 50 + ((Math.log10(value) - low) / -low) * (PLOT - 60);
  const x = (value) => place(value);
  const y = (value) => PLOT - place(value);
  const plot = drawn("svg", { role: "img", width: PLOT, height: PLOT, viewBox: `0 0 ${PLOT + 20} ${PLOT}`,
    "aria-label": "Predicted against observed probability; the values are in the table below." });
  plot.append(drawn("path", { class: "axis", d: `M50 10V${PLOT - 50}H${PLOT - 10}` }),
    drawn("line", { class: "ideal", x1: x(10 ** low), y1: y(10 ** low), x2: x(1), y2: y(1) }));
  for (let power = low; power <= 0; power += 1) {
    const value = 10 ** power;
    const across = drawn("text", { x: x(value), y: PLOT - 34, "text-anchor": "middle" });
    const up = drawn("text", { x: 44, y: y(value) + 4, "text-anchor": "end" });
    across.textContent = up.textContent = percent(value);
    plot.append(across, up);
  }
  const names = [drawn("text", { x: PLOT / 2, y: PLOT - 12, "text-anchor": "middle" }),
    drawn("text", { x: 56, y: 16 })];
  names[0].textContent = "predicted";
  names[1].textContent = "observed";
  const path = shown.map((each, number) => `${number ? "L" : "M"}${x(each.predicted)} ${y(each.observed)}`).join("");
  plot.append(...names, drawn("path", { class: "line", d: path }),
    ...shown.map((each) => drawn("circle", { class: "point", cx: x(each.predicted), cy: y(each.observed), r: 4 })));
  return plot;
}

let asked = 0;
async function show() {
  const mine = ++asked;
  await attempt(async () => {
    const found = await ask(`${model(byId("category").value)}/analysis`);
    if (mine !== asked) return;
    showWarnings(found);
    showSegments(found.segments);
    showMap(found.map);
    showPairs("substitutes", found.substitutes, "Most certain pairs first");
    showPairs("complements", found.complements, "Most certain pairs first");
    showCalibration(found.calibration);
    byId("status").textContent = `Showing ${titled(found.title)}, version ${found.version.slice(0, 12)}.`;
  });
}

async function start() {
  await attempt(async () => {
    const { models } = await ask("/v1/analysis");
    showScores(models);
    byId("category").replaceChildren(...models.map(({ name, title }) => element("option", { value: name }, titled(title))));
    byId("category").addEventListener("change", show);
    await show();
  });
}

start();

// The basket page: the basket is kept here, everything else comes from the service.

import { ask, attempt, byId, element, interval, model, percent, showWarnings, times, titled } from "./common.js";

const WANTED = 10;      // items of a basket that is filled up
const SUGGESTED = 8;
const FOUND = 12;
const WHY = 3;          // influences shown per suggestion
const TELLING = 0.05;   // how far from 1 a factor must be to be worth a word
const PAUSE = 150;      // milliseconds after the last key before a search

const basket = [];      // { item, category }
let models = [];
let asked = 0;          // of several questions under way, the answer to the last counts
let searched = 0;

const category = () => byId("category").value;
const chosen = () => (category() ? [category()] : null);
const has = (item) => basket.some((each) => String(each.item) === String(item));
const title = (name) => titled(models.find((each) => each.name === name)?.title ?? name);

function button(text, label, onclick, more = {}) {
  return element("button", { type: "button", "aria-label": label, onclick, ...more }, text);
}

function row(item, tag, ...actions) {
  return element("li", {},
    element("span", { class: "name" }, String(item), tag ? element("span", { class: "tag" }, tag) : null),
    element("span", { class: "actions" }, ...actions));
}

function add(item, of) {
  if (has(item)) return;
  basket.push({ item, category: of });
  changed(`${item} added.`);
}

function remove(item) {
  const at = basket.findIndex((each) => each.item === item);
  basket.splice(at, 1);
  byId("about").hidden = true;
  changed(`${item} removed.`);
  const next = byId("basket").querySelectorAll("button.remove")[Math.min(at, basket.length - 1)];
  (next ?? byId("search")).focus();
}

function changed(news) {
  showBasket();
  markFound();
  return suggest(news);
}

function showBasket() {
  byId("basket-count").textContent = basket.length ? `(${basket.length})` : "";
  byId("basket-empty").hidden = basket.length > 0;
  byId("fill").disabled = basket.length >= WANTED;
  byId("clear").disabled = !basket.length;
  byId("basket").replaceChildren(...basket.map(({ item, category: of }) =>
    row(item, models.length > 1 ? title(of) : "",
      button("Compare", `Compare ${item} with its substitutes and complements`, () => compare(item, of)),
      button("Remove", `Remove ${item}`, () => remove(item), { class: "remove" }))));
}

async function suggest(news = "") {
  const mine = ++asked;
  await attempt(async () => {
    const answer = await ask("/v1/recommend",
      { basket: basket.map((each) => each.item), k: SUGGESTED, categories: chosen(), explain: true, unknown: "drop" });
    if (mine !== asked) return;
    showWarnings(answer);
    byId("suggested").replaceChildren(...answer.items.map(suggestion));
    const first = answer.items.length ? `First: ${answer.items[0].item}.` : "Nothing more can be added.";
    byId("status").textContent = `${news} ${answer.items.length} suggestions. ${first}`.trim();
  });
}

function suggestion(each) {
  const where = models.length > 1 && !category() ? ` · ${title(each.category)}` : "";
  return element("li", {},
    element("span", {}, element("span", { class: "name" }, String(each.item)),
      element("span", { class: "tag" }, `in ${percent(each.probability)} of baskets with these items${where}`)),
    button("Add", `Add ${each.item}`, () => add(each.item, each.category)),
    element("ul", { class: "why", "aria-label": `Why ${each.item}` }, ...reasons(each)));
}

function reasons({ influences, alone }) {
  const telling = (influences ?? []).filter(({ factor }) => Math.abs(factor - 1) >= TELLING).slice(0, WHY);
  if (telling.length) return telling.map(reason);
  const text = basket.length && influences?.length
    ? "hardly changed by your basket"
    : `in ${percent(alone)} of all baskets`;
  return [element("li", {}, bar(1), element("span", { class: "small" }, text))];
}

function reason({ item, factor }) {
  const up = factor > 1;
  const words = up ? `${times(factor)} as likely with ${item}` : `${factor < 0.5 ? "only " : ""}${percent(factor)} as likely with ${item}`;
  return element("li", {}, bar(factor), element("span", {},
    element("span", { class: up ? "text-up" : "text-down" }, up ? "▲ " : "▼ "), words));
}

// From the middle, a factor of 4 fills one side.
function bar(factor) {
  const made = element("span", { class: "bar", "aria-hidden": "true" });
  const width = Math.min(Math.abs(Math.log2(Math.max(factor, 1e-6))) / 2, 1) * 50;
  if (width > 0) {
    const filled = element("span", { class: factor > 1 ? "up" : "down" });
    filled.style.width = `${width}%`;
    made.append(filled);
  }
  return made;
}

const bounds = (each) => (typeof each.high === "number" ? ` (95% interval ${interval(each)})` : "");

async function compare(item, of) {
  await attempt(async () => {
    const { substitutes, complements } = await ask(`${model(of)}/related?${new URLSearchParams({ item, k: 5 })}`);
    byId("about-title").textContent = String(item);
    list("substitutes", substitutes, of, (each) => `co-occur ${percent(each.lift)} as often as under independence${bounds(each)}`,
      (other) => button("Swap", `Swap ${item} for ${other}`, () => swap(item, other, of)));
    list("complements", complements, of, (each) => `co-occur ${times(each.lift)} as often as under independence${bounds(each)}`,
      (other) => button("Add", `Add ${other}`, () => add(other, of)));
    byId("about").hidden = false;
    byId("about-title").focus();
  });
}

function list(id, items, of, words, action) {
  const rows = items.map((each) => row(each.item, words(each), has(each.item) ? "added" : action(each.item)));
  byId(id).replaceChildren(...(rows.length ? rows : [element("li", { class: "small" }, "none")]));
}

function swap(item, other, of) {
  const at = basket.findIndex((each) => each.item === item);
  if (at < 0 || has(other)) return;
  basket[at] = { item: other, category: of };
  byId("about").hidden = true;
  changed(`${item} replaced by ${other}.`);
}

async function fill() {
  await attempt(async () => {
    const items = basket.map((each) => each.item);
    const answer = await ask("/v1/complete", { basket: items, k: WANTED, categories: chosen(), unknown: "drop" });
    for (const [number, item] of answer.added.entries()) basket.push({ item, category: answer.categories[number] });
    await changed(`${answer.added.length} items added. ${answer.note}`);
  });
}

async function search() {
  const mine = ++searched;
  await attempt(async () => {
    const words = byId("search").value.trim();
    const names = chosen() ?? models.map((each) => each.name);
    const query = new URLSearchParams({ search: words, limit: FOUND });
    const answers = await Promise.all(names.map((name) => ask(`${model(name)}/items?${query}`)));
    if (mine !== searched) return;
    const found = answers.flatMap((answer) => answer.items.map((each) => ({ ...each, category: answer.model })));
    found.sort((one, other) => other.probability - one.probability);
    showFound(found.slice(0, FOUND), words);
  });
}

function showFound(found, words) {
  byId("found").replaceChildren(...found.map(({ item, category: of }) =>
    row(item, models.length > 1 ? title(of) : "",
      button("Add", `Add ${item}`, () => add(item, of), { "data-item": item }))));
  byId("found").dataset.search = words; // what the list is of, while another search is under way
  byId("found-count").textContent = found.length ? (words ? "" : "Most likely items:") : `Nothing found for “${words}”.`;
  markFound();
}

function markFound() {
  for (const each of byId("found").querySelectorAll("button")) each.disabled = has(each.dataset.item);
}

async function start() {
  await attempt(async () => {
    ({ models } = await ask("/v1/models"));
    const all = models.length > 1 ? [element("option", { value: "" }, "All models")] : [];
    byId("category").replaceChildren(...all, ...models.map(({ name }) => element("option", { value: name }, title(name))));
    if (models.length === 1) byId("title").textContent = `Basket: ${title(models[0].name)}`;
    showBasket();
    await Promise.all([search(), suggest()]);
  });
}

let waiting;
byId("search").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE);
});
byId("category").addEventListener("change", () => {
  search();
  suggest();
});
byId("fill").addEventListener("click", fill);
byId("clear").addEventListener("click", () => {
  basket.length = 0;
  byId("about").hidden = true;
  changed("Basket emptied.");
  byId("search").focus();
});
byId("about-close").addEventListener("click", () => {
  byId("about").hidden = true;
  byId("basket-title").parentElement.querySelector("button")?.focus();
});
start();

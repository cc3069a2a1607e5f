// The registry builder: what is in the registry is here, everything else comes from the service.

import { ask, attempt, byId, element, model, percent, times, titled } from "./common.js";

const WANTED = 10;      // items of a registry that is filled up
const SUGGESTED = 8;
const FOUND = 12;
const WHY = 3;          // influences shown per suggestion
const TELLING = 0.05;   // how far from 1 a factor must be to be worth a word
const PAUSE = 150;      // milliseconds after the last key before a search

const registry = [];    // { item, category }
let models = [];
let asked = 0;          // of several questions under way, the answer to the last counts
let searched = 0;

const category = () => byId("category").value;
const chosen = () => (category() ? [category()] : null);
const has = (item) => registry.some((each) => String(each.item) === String(item));
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
  registry.push({ item, category: of });
  changed(`${item} added.`);
}

function remove(item) {
  const at = registry.findIndex((each) => each.item === item);
  registry.splice(at, 1);
  byId("about").hidden = true;
  changed(`${item} removed.`);
  const next = byId("registry").querySelectorAll("button.remove")[Math.min(at, registry.length - 1)];
  (next ?? byId("search")).focus();
}

function changed(news) {
  showRegistry();
  markFound();
  return suggest(news);
}

function showRegistry() {
  byId("registry-count").textContent = registry.length ? `(${registry.length})` : "";
  byId("registry-empty").hidden = registry.length > 0;
  byId("fill").disabled = registry.length >= WANTED;
  byId("clear").disabled = !registry.length;
  byId("registry").replaceChildren(...registry.map(({ item, category: of }) =>
    row(item, models.length > 1 ? title(of) : "",
      button("Compare", `Compare ${item} with its alternatives and what goes with it`, () => compare(item, of)),
      button("Remove", `Remove ${item}`, () => remove(item), { class: "remove" }))));
}

async function suggest(news = "") {
  const mine = ++asked;
  await attempt(async () => {
    const basket = registry.map((each) => each.item);
    const answer = await ask("/v1/recommend",
      { basket, k: SUGGESTED, categories: chosen(), explain: true, unknown: "ignore" });
    if (mine !== asked) return;
    byId("suggested").replaceChildren(...answer.items.map(suggestion));
    const first = answer.items.length ? `First: ${answer.items[0].item}.` : "Nothing more can be added.";
    byId("status").textContent = `${news} ${answer.items.length} suggestions. ${first}`.trim();
  });
}

function suggestion(each) {
  const where = models.length > 1 && !category() ? ` · ${title(each.category)}` : "";
  return element("li", {},
    element("span", {}, element("span", { class: "name" }, String(each.item)),
      element("span", { class: "tag" }, `in ${percent(each.probability)} of registries like yours${where}`)),
    button("Add", `Add ${each.item}`, () => add(each.item, each.category)),
    element("ul", { class: "why", "aria-label": `Why ${each.item}` }, ...reasons(each)));
}

function reasons({ influences, alone }) {
  const telling = (influences ?? []).filter(({ factor }) => Math.abs(factor - 1) >= TELLING).slice(0, WHY);
  if (telling.length) return telling.map(reason);
  const text = registry.length && influences?.length
    ? "your registry changes little about it"
    : `${percent(alone)} of all registries have it`;
  return [element("li", {}, bar(1), element("span", { class: "small" }, text))];
}

function reason({ item, factor }) {
  const up = factor > 1;
  const words = up ? `${times(factor)} as likely beside ${item}` : `${factor < 0.5 ? "only " : ""}${percent(factor)} as likely beside ${item}`;
  return element("li", {}, bar(factor), element("span", {},
    element("span", { class: up ? "text-up" : "text-down" }, up ? "▲ " : "▼ "), words));
}

// From the middle, a factor of 8 fills one side.
function bar(factor) {
  const made = element("span", { class: "bar", "aria-hidden": "true" });
  const width = Math.min(Math.abs(Math.log2(Math.max(factor, 1e-6))) / 3, 1) * 50;
  if (width > 0) {
    const filled = element("span", { class: factor > 1 ? "up" : "down" });
    filled.style.width = `${width}%`;
    made.append(filled);
  }
  return made;
}

async function compare(item, of) {
  await attempt(async () => {
    const [apart, together] = await Promise.all(
      ["substitutes", "complements"].map((what) => ask(`${model(of)}/${what}`, { item, k: 5 })));
    byId("about-title").textContent = String(item);
    list("substitutes", apart.items, of, ({ lift }) => `together ${percent(lift)} as often as by chance`,
      (other) => button("Swap", `Swap ${item} for ${other}`, () => swap(item, other, of)));
    list("complements", together.items, of, ({ lift }) => `together ${times(lift)} as often as by chance`,
      (other) => button("Add", `Add ${other}`, () => add(other, of)));
    byId("about").hidden = false;
    byId("about-title").focus();
  });
}

function list(id, items, of, words, action) {
  const rows = items.map((each) => row(each.item, words(each), has(each.item) ? "added" : action(each.item)));
  byId(id).replaceChildren(...(rows.length ? rows : [element("li", { class: "small" }, "none that the model knows of")]));
}

function swap(item, other, of) {
  const at = registry.findIndex((each) => each.item === item);
  if (at < 0 || has(other)) return;
  registry[at] = { item: other, category: of };
  byId("about").hidden = true;
  changed(`${other} taken instead of ${item}.`);
}

async function fill() {
  await attempt(async () => {
    const basket = registry.map((each) => each.item);
    const answer = await ask("/v1/complete", { basket, k: WANTED, categories: chosen(), unknown: "ignore" });
    for (const [number, item] of answer.added.entries()) registry.push({ item, category: answer.categories[number] });
    await changed(`${answer.added.length} products added. ${answer.note}`);
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
  byId("found").replaceChildren(...found.map(({ item, probability, category: of }) =>
    row(item, `in ${percent(probability)} of registries`,
      button("Add", `Add ${item}`, () => add(item, of), { "data-item": item }))));
  byId("found").dataset.search = words; // what the list is of, while another search is under way
  byId("found-count").textContent = found.length ? (words ? "" : "The most wanted:") : `Nothing found for “${words}”.`;
  markFound();
}

function markFound() {
  for (const each of byId("found").querySelectorAll("button")) each.disabled = has(each.dataset.item);
}

async function start() {
  await attempt(async () => {
    ({ models } = await ask("/v1/models"));
    const all = models.length > 1 ? [element("option", { value: "" }, "All categories")] : [];
    byId("category").replaceChildren(...all, ...models.map(({ name }) => element("option", { value: name }, title(name))));
    showRegistry();
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
  registry.length = 0;
  byId("about").hidden = true;
  changed("Registry emptied.");
  byId("search").focus();
});
byId("about-close").addEventListener("click", () => {
  byId("about").hidden = true;
  byId("registry-title").parentElement.querySelector("button")?.focus();
});
start();

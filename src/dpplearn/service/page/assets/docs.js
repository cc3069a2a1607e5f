// The OpenAPI document as a page, with a form to try every address.

import { attempt, byId, element } from "./common.js";

const named = (reference) => reference.split("/").pop();

// A schema in one line of words.
function words(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return named(schema.$ref);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(words))].join(" or ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${words(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties) return `object of ${words(schema.additionalProperties)}`;
  return schema.type ?? "anything";
}

function fields(schema) {
  const required = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, each]) => element("tr", {},
    element("th", { scope: "row" }, element("code", {}, name)),
    element("td", {}, words(each)),
    element("td", {}, each.default !== undefined ? JSON.stringify(each.default) : required.includes(name) ? "required" : ""),
    element("td", {}, each.description ?? "")));
  const head = ["field", "is", "default", ""].map((text) => element("th", { scope: "col" }, text || "about"));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

const json = (content) => Object.entries(content ?? {}).find(([type]) => type.includes("json"))?.[1].schema;

function operation(path, method, each, schemas) {
  const asked = json(each.requestBody?.content);
  const answered = json(each.responses?.[200]?.content);
  const request = asked?.$ref ? schemas[named(asked.$ref)] : undefined;
  return element("details", { class: "operation" },
    element("summary", {}, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path),
      ` ${each.summary ?? ""}`),
    request ? element("div", {}, element("h3", {}, "Request"), fields(request)) : null,
    answered ? element("p", {}, `Answer: ${words(answered)}`) : null,
    element("p", { class: "small" }, `Or: ${Object.entries(each.responses ?? {}).filter(([status]) => status !== "200")
      .map(([status, { description }]) => `${status} ${description}`).join("; ") || "nothing else"}`),
    trial(path, method, request));
}

function trial(path, method, request) {
  const id = `try-${method}-${path.replaceAll(/\W+/g, "-")}`;
  const address = element("input", { id, value: path });
  const start = request?.examples?.[0] ?? Object.fromEntries((request?.required ?? []).map((name) => [name, name === "rows" ? [] : ""]));
  const body = request ? element("textarea", { id: `${id}-body` }, JSON.stringify(start)) : null;
  const output = element("pre", { tabindex: "0", role: "region", "aria-label": "Answer", "aria-live": "polite", hidden: true });
  const send = async () => {
    const key = sessionStorage.getItem("dpplearn-key");
    const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
    output.hidden = false;
    try {
      const response = await fetch(address.value, { method: method.toUpperCase(), headers, body: body?.value });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 1); } catch { /* not JSON, as the metrics */ }
      output.textContent = `${response.status}\n${shown}`;
    } catch (error) {
      output.textContent = String(error);
    }
  };
  return element("div", {},
    element("label", { for: id }, "Try it at"), address,
    body ? element("label", { for: `${id}-body` }, "with this body") : null, body,
    element("div", { class: "buttons" }, element("button", { type: "button", onclick: send }, "Send")), output);
}

function problems(paths) {
  const told = new Map();
  for (const each of Object.values(paths).flatMap(Object.values)) {
    for (const [status, { description }] of Object.entries(each.responses ?? {})) {
      if (Number(status) >= 400) description.split("; ").forEach((title) => told.set(title, status));
    }
  }
  return [...told].sort((one, other) => one[1] - other[1])
    .flatMap(([title, status]) => [element("dt", {}, status), element("dd", {}, title)]);
}

attempt(async () => {
  const { paths, components } = await (await fetch("/openapi.json")).json();
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => [each.tags?.[0] ?? "other", operation(path, method, each, components.schemas)]));
  for (const tag of new Set(all.map(([of]) => of))) {
    byId("operations").append(element("h2", {}, tag), ...all.filter(([of]) => of === tag).map(([, made]) => made));
  }
  byId("problems").append(...problems(paths));
  byId("schemas").append(...Object.entries(components.schemas).filter(([, each]) => each.properties).map(([name, each]) =>
    element("details", { class: "operation" }, element("summary", {}, element("code", {}, name), ` ${each.description ?? ""}`), fields(each))));
});

// Shared by the pages: requests, the key, and small pieces of HTML.

const KEY = "dpplearn-key";

export const byId = (id) => document.getElementById(id);

export class ServiceError extends Error {}

// Send a request; problems are thrown with their own text.
export async function ask(path, body) {
  const headers = { accept: "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  const how = { headers };
  if (body !== undefined) {
    how.method = "POST";
    how.body = JSON.stringify(body);
    headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, how);
  } catch {
    throw new ServiceError("The service cannot be reached. Try again in a moment.");
  }
  if (response.status === 401) {
    askForKey();
    throw new ServiceError("This service requires a key.");
  }
  const answer = await response.json();
  if (!response.ok) throw new ServiceError(answer.detail || answer.title);
  return answer;
}

function askForKey() {
  const form = byId("key-form");
  if (!form.hidden) return;
  form.hidden = false;
  byId("key").focus();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, byId("key").value);
    location.reload();
  });
}

// Run an action and show what goes wrong.
export async function attempt(work) {
  const trouble = byId("trouble");
  try {
    await work();
    trouble.hidden = true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    trouble.textContent = error.message;
    trouble.hidden = false;
  }
}

// An element with attributes and children, which are elements or plain text: no text is ever read as HTML.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

export const model = (name) => `/v1/models/${encodeURIComponent(name)}`;

export const percent = (share) => {
  if (typeof share !== "number") return "?";
  const value = 100 * share;
  return `${value >= 10 ? Math.round(value) : value.toPrecision(2)}%`;
};

export const interval = ({ low, high }, digits = 2) =>
  (typeof low === "number" && typeof high === "number" ? `${low.toFixed(digits)} to ${high.toFixed(digits)}` : "–");

// Show the warnings of an answer, such as that a model is not better than independent items.
export function showWarnings({ warnings }) {
  byId("warnings").textContent = warnings.join(" ");
  byId("warnings").hidden = !warnings.length;
}

export const times = (factor) => `${factor >= 10 ? Math.round(factor) : factor.toFixed(1)} times`;

export const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);

// What pages do better with scripts: forms that answer as one types, parts that come later, one key to ask. All of it works without.

const TYPING_MS = 500;
const LOOKING_MS = 5000;
const AHEAD = "200px";

/** The address of a form's answer: its fields that are not blank, with a button that leads elsewhere where it leads. */
function addressOf(form, button = null) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form, button)) {
    if (typeof value === "string" && value.trim()) fields.append(name, value.trim());
  }
  const query = fields.toString();
  const { origin, pathname, hash } = new URL(button ? button.formAction : form.action);
  return origin + pathname + (query ? `?${query}` : "") + hash;
}

async function fetchPage(address, signal) {
  const response = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin", signal });
  if (response.redirected && new URL(response.url).pathname === "/sign-in") location.assign(response.url);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Put what is wrong with each field beside it, as the answered page has it. */
function showErrors(form, answered) {
  for (const field of form.querySelectorAll(".field")) {
    const input = field.querySelector("input, select");
    const found = answered.getElementById(input.id)?.closest(".field");
    const error = found?.querySelector(".error");
    field.classList.toggle("wrong", Boolean(error));
    field.querySelector(".error")?.remove();
    input.toggleAttribute("aria-invalid", Boolean(error));
    if (error) {
      field.append(error);
      field.closest("details")?.setAttribute("open", "");
    }
  }
}

/** What gives the focus back to what has it now, found again by its id or name, once a part of the page is another. */
function focusIn(part) {
  const { id, name } = part.contains(document.activeElement) ? document.activeElement : {};
  return () => (id ? document.getElementById(id) : name ? part.querySelector(`[name="${CSS.escape(name)}"]`) : null)?.focus({ preventScroll: true });
}

/** Show what a part had until it is asked for again. */
function keep(before, part) {
  if (before?.dataset.filled) part.replaceChildren(...before.childNodes);
}

/** A form whose answer follows what is typed, and links of the same kind, which change what is asked. */
function follow(form) {
  const result = document.getElementById(form.dataset.live);
  let timer = 0;
  let running = new AbortController();

  function again() {
    clearTimeout(timer);
    timer = setTimeout(answer, TYPING_MS);
  }

  async function answer(link = "") {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    const typed = addressOf(form);
    const address = link || typed;
    result.setAttribute("aria-busy", "true");
    try {
      const answered = await fetchPage(address, running.signal);
      if (addressOf(form) !== typed) return again(); // what was typed meanwhile would be lost with the fields of this answer
      const found = answered.getElementById(result.id);
      if (!found) return location.assign(address);
      const focused = focusIn(result);
      if (link) for (const part of found.querySelectorAll("[data-fragment][id]")) keep(document.getElementById(part.id), part);
      result.replaceChildren(...found.childNodes);
      focused();
      showErrors(form, answered);
      document.title = answered.title;
      history.replaceState(null, "", address);
      enhance(result);
    } catch (error) {
      if (error.name !== "AbortError") location.assign(address);
      return;
    }
    result.removeAttribute("aria-busy");
  }

  document.addEventListener("change", (event) => { if (event.target.form === form) answer(); });
  document.addEventListener("input", (event) => {
    if (event.target.form === form) again();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-live]");
    if (link?.dataset.live !== form.id || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    answer(link.href);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { submitter } = event;
    if (submitter?.hasAttribute("formaction")) location.assign(addressOf(form, submitter));
    else answer();
  });
}

/** A part of the page that is asked for when it comes into view. */
function fill(part) {
  new IntersectionObserver(async (entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    part.setAttribute("aria-busy", "true");
    try {
      const found = await fetchPage(part.dataset.fragment);
      const focused = focusIn(part);
      part.replaceChildren(...found.body.childNodes);
      part.dataset.filled = "true";
      focused();
    } finally {
      part.removeAttribute("aria-busy");
    }
  }).observe(part);
}

/** A part of the page that follows what workers do: by its events and, where the service has no stream left, by looking again. */
function watch(part) {
  const source = new EventSource(part.dataset.events);

  async function look() {
    const found = (await fetchPage(location.href)).getElementById(part.id);
    part.replaceChildren(...found.childNodes);
    enhance(part);
    for (const form of part.querySelectorAll("form[data-live]")) follow(form);
    return Boolean(found.dataset.events);
  }

  async function poll() {
    if (await look().catch(() => true)) setTimeout(poll, LOOKING_MS);
  }

  source.addEventListener("progress", (event) => {
    const { state, progress, created_at, updated_at } = JSON.parse(event.data);
    if (part.querySelector("[data-state]").dataset.state !== state) return look();
    part.querySelector("progress").value = progress.done;
    part.querySelector("[data-done]").textContent = progress.done.toLocaleString("en");
    const left = ((Date.parse(updated_at) - Date.parse(created_at)) * (progress.total - progress.done)) / progress.done;
    if (progress.done) part.querySelector("[data-left]").textContent = `, some ${Math.ceil(left / 1000).toLocaleString("en")} s are left`;
  });
  source.addEventListener("end", () => {
    source.close();
    poll();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(poll, LOOKING_MS);
  });
}

/** A chart's picture, which becomes a view that answers when it comes into sight. */
function animate(picture) {
  new IntersectionObserver(async (entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    const { draw } = await import("/assets/charts.js");
    draw(picture);
  }, { rootMargin: AHEAD }).observe(picture);
}

function enhance(root) {
  for (const part of root.querySelectorAll("[data-fragment]")) fill(part);
  for (const picture of root.querySelectorAll("picture")) animate(picture);
}

for (const form of document.querySelectorAll("form[data-live]")) follow(form);
for (const part of document.querySelectorAll("[data-events]")) watch(part);
enhance(document);

document.addEventListener("keydown", (event) => {
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
  event.preventDefault();
  target.focus();
});

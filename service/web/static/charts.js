// Pictures of charts as views of the same specification: they say what is under the pointer, and their lines can be moved. A picture
// stays where that fails.

const DAY_MS = 86400000;
const OFFSET_PX = 12;
const NARROWEST_PX = 180;
const TITLE_PX = 8; // of a character
const SUBTITLE_PX = 6;
// Nothing is evaluated (ast), no style sheet is added, and layers without rows are no news (errors alone are logged).
const OPTIONS = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: tell, logLevel: 1 };
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // by the path of a chart: its view, which stays in sight until the next one of that path is there
let bundle;

/** The address of a picture's specification, in the present scheme. */
function addressOf(picture) {
  const address = new URL(picture.querySelector("img").src);
  address.searchParams.set("format", "vega");
  if (dark.matches) address.searchParams.set("theme", "dark");
  return address;
}

async function specificationOf(picture) {
  const response = await fetch(addressOf(picture), { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (!response.ok) throw new Error(`no specification: ${response.status}`);
  return response.json();
}

/** Draw the view of a picture in its place. */
export async function draw(picture) {
  const image = picture.querySelector("img");
  const path = new URL(image.src).pathname;
  const before = drawn.get(path);
  if (before && !before.place.isConnected) show(picture, before.place);
  try {
    bundle ??= import("/assets/vega.js");
    const [{ default: embed }, specification] = await Promise.all([bundle, specificationOf(picture)]);
    const place = placeOf(image);
    const wide = before?.wide ?? (await naturalWidth(image));
    narrow(specification, wide, picture.parentElement.clientWidth);
    const made = await embed(place, specification, OPTIONS);
    name(place, image.alt);
    if (picture.isConnected) {
      before?.made.finalize();
      before?.place.remove();
      drawn.set(path, { made, place, picture, wide });
      show(picture, place);
      if (specification.usermeta?.moves) move(made.view, place, specification.usermeta);
    } else made.finalize();
  } catch (error) {
    bundle = undefined;
    before?.place.remove();
    drawn.delete(path);
    picture.hidden = false;
    console.info("a chart stays a picture:", error.message);
  }
}

/** How wide a chart is by itself. A picture that is not in sight would never be loaded: where there is a view already, it has the width. */
async function naturalWidth(image) {
  await image.decode().catch(() => null);
  return image.naturalWidth;
}

/** Make a chart that is wider than its place narrower, so that its words keep their size, with its title in several lines. */
function narrow(specification, wide, room) {
  const over = wide - room;
  if (over <= 0) return;
  if (specification.title) {
    const { text = specification.title, subtitle = [], ...more } = specification.title;
    specification.title = { ...more, text: wrapped(text, room / TITLE_PX), subtitle: wrapped(subtitle, room / SUBTITLE_PX) };
  }
  for (const part of specification.vconcat ?? [specification]) {
    if (part.width) part.width = Math.min(part.width, Math.max(NARROWEST_PX, part.width - over));
  }
}

/** Lines of as many characters at most, where words allow. */
function wrapped(text, most) {
  const lines = [];
  for (const line of [text].flat()) {
    lines.push("");
    for (const word of line.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (longer.length > most && lines.at(-1)) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
  }
  return lines;
}

/** Give a view the name of its picture, in the place of Vega's. The table has the figures. */
function name(place, words) {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", words);
  place.querySelector("svg").setAttribute("aria-hidden", "true");
}

/** Where a view is drawn: as wide as its picture. */
function placeOf(image) {
  const place = document.createElement("div");
  place.className = "chart";
  place.style.setProperty("max-width", `${image.getAttribute("width")}px`);
  return place;
}

function show(picture, place) {
  picture.after(place);
  picture.hidden = true;
}

/** Say what is under the pointer, beside it. */
function tell(_, event, item, text) {
  const tip = document.querySelector(".tip") ?? document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip" }));
  tip.hidden = text === null || text === undefined || text === "";
  if (tip.hidden) return;
  tip.textContent = text;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const beside = event.clientX + OFFSET_PX + width < innerWidth ? event.clientX + OFFSET_PX : Math.max(0, event.clientX - OFFSET_PX - width);
  tip.style.setProperty("left", `${beside}px`);
  tip.style.setProperty("top", `${Math.max(0, Math.min(event.clientY + OFFSET_PX, innerHeight - height))}px`);
}

/** A line of a view that moves: with the pointer, and with a slider beside the field that says where it is. */
function move(view, place, { moves, lowest, highest, step, is_day }) {
  const field = document.querySelector(`[name="${CSS.escape(moves)}"]`);
  if (!field) return;
  const slider = field.parentElement.querySelector(".slider") ?? sliderOf(field, { lowest, highest, step });
  const written = (value) => (is_day ? new Date(value * DAY_MS).toISOString().slice(0, 10) : String(value));
  const unit = is_day ? DAY_MS : 1;

  function set(value) {
    view.signal("goal", value * unit).run();
    if (field.value === written(value)) return;
    slider.value = value;
    field.value = written(value);
    slider.setAttribute("aria-valuetext", field.value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function follow(event) {
    if (!event.buttons) return;
    const plot = place.querySelector(".curve_group .background").getBoundingClientRect();
    const [first, last] = view.scale("x").domain().map(Number);
    const value = (first + ((last - first) * (event.clientX - plot.left)) / plot.width) / unit;
    set(Math.min(highest, Math.max(lowest, Math.round(value / step) * step)));
  }

  const goal = view.signal("goal");
  slider.value = goal === null ? (lowest + highest) / 2 : goal / unit;
  slider.oninput = () => set(Number(slider.value));
  place.addEventListener("pointerdown", follow);
  place.addEventListener("pointermove", follow);
  place.classList.add("movable");
}

function sliderOf(field, { lowest, highest, step }) {
  const slider = document.createElement("input");
  const label = document.querySelector(`label[for="${CSS.escape(field.id)}"]`);
  Object.assign(slider, { type: "range", className: "slider", min: lowest, max: highest, step });
  slider.setAttribute("aria-label", `${label.textContent.trim()}: move the line`);
  field.after(slider);
  return slider;
}

function silence(event) {
  if (event.type === "keydown" && event.key !== "Escape") return;
  const tip = document.querySelector(".tip");
  if (tip) tip.hidden = true;
}

document.addEventListener("keydown", silence);
document.addEventListener("scroll", silence, { passive: true, capture: true });
dark.addEventListener("change", () => {
  for (const { picture } of drawn.values()) if (picture.isConnected) draw(picture);
});

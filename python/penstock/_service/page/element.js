// Elements are made here, and text is only ever set as text.

/** element("p", {class: "dim", onclick: f}, "text", other) */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The same for a picture of lines. */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

function set(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Puts these in place of what was in there; what is equal stays, so that the
 * focus and the selection are kept. */
export function fill(place, ...children) {
  const wanted = children.flat().filter((child) => child !== null && child !== undefined);
  wanted.forEach((child, at) => {
    const there = place.children[at];
    if (there === undefined) place.append(child);
    else if (!there.isEqualNode(child) && !adopt(there, child)) there.replaceWith(child);
  });
  while (place.children.length > wanted.length) place.lastElementChild.remove();
}

/** Changes `there` in place where it only differs in text or in children. */
function adopt(there, child) {
  if (there.tagName !== child.tagName || there.dataset.key !== child.dataset.key ||
      !there.dataset.key) return false;
  for (const name of there.getAttributeNames())
    if (!child.hasAttribute(name)) there.removeAttribute(name);
  for (const name of child.getAttributeNames())
    there.setAttribute(name, child.getAttribute(name));
  if (child.children.length === 0) there.textContent = child.textContent;
  else fill(there, ...child.children);
  return true;
}

let shown = 0;

/** A line at the bottom of the page, read out by screen readers. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(shown);
  shown = setTimeout(() => { place.textContent = ""; }, 6000);
}

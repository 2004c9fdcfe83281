/** Owns how elements are made. Text is always text: nothing here reads markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element: `h("button.primary", { onclick }, "Run")`. Properties that begin with `on` are
 * listeners; `null`, `undefined` and `false` leave an attribute or a child away.
 */
export function h(selector, ...rest) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, rest);
}

/** The same for SVG. */
export function s(tag, ...rest) {
  return fill(document.createElementNS(SVG, tag), rest);
}

function fill(element, rest) {
  const [first] = rest;
  const plain = first !== null && typeof first === "object";
  const hasProps = plain && !(first instanceof Node) && !Array.isArray(first);
  if (hasProps) setAll(element, first);
  append(element, hasProps ? rest.slice(1) : rest);
  return element;
}

export function setAll(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) {
      if (!name.startsWith("on") && value === false) element.removeAttribute(name);
      continue;
    }
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name === "style") setStyle(element, value);
    else if (name === "value" || name === "checked" || name === "indeterminate")
      element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Styles by name; custom properties begin with `--`. */
export function setStyle(element, styles) {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Puts these in the place of everything that the element holds. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

let last = 0;

/** An id that no other element has. */
export function freshId(prefix = "id") {
  last += 1;
  return `${prefix}-${last}`;
}

/** Calls the function when calls have stopped for so many milliseconds. */
export function afterPause(milliseconds, call) {
  let waiting = 0;
  const later = (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(...given), milliseconds);
  };
  later.cancel = () => clearTimeout(waiting);
  return later;
}

/** Lets the browser paint and take input before work goes on. */
export function breathe() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

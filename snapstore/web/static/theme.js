"use strict";
// A script of its own, before the first paint: the page must not flash in the other theme.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // storage may be forbidden; then the system decides
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

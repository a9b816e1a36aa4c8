"use strict";

/* Without a mouse: / searches, j and k walk the rows, 1 to 4 are the pages. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, select, textarea, #map-canvas");
  if (typing && event.key === "Escape") typing.blur();
  if (typing) return;
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(document.activeElement);
  const keys = {
    "/": () => document.getElementById("search")?.focus(),
    j: () => rows[Math.min(at + 1, rows.length - 1)]?.focus(),
    k: () => rows[Math.max(at - 1, 0)]?.focus(),
  };
  const page = document.querySelectorAll(".masthead nav a")[Number(event.key) - 1];
  if (keys[event.key]) keys[event.key]();
  else if (page) page.click();
  else return;
  event.preventDefault();
});

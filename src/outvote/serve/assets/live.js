"use strict";

/*
 * Parts of a page that change: each is asked for again every second, while the page is seen.
 * An answer without content says that nothing has changed since the version that is shown.
 */
(() => {
  const EVERY = 1000;
  const lost = document.getElementById("lost");

  function put(part, text) {
    const open = [...part.querySelectorAll("details")].map((item) => item.open);
    const focused = part.contains(document.activeElement) ? address(document.activeElement) : null;
    const said = part.querySelector("[data-said]")?.textContent;
    const made = document.createElement("template");
    made.innerHTML = text;
    part.replaceChildren(made.content);
    part.querySelectorAll("details").forEach((item, i) => (item.open = open[i] ?? false));
    if (said) part.querySelector("[data-said]").textContent = said;
    if (focused) [...part.querySelectorAll("a, button")].find((e) => address(e) === focused)?.focus();
  }

  const address = (element) => element.href ?? element.dataset.post ?? element.textContent;

  async function refresh(part) {
    const version = part.querySelector("[data-version]")?.dataset.version ?? "";
    const answer = await fetch(`${part.dataset.live}?v=${encodeURIComponent(version)}`);
    lost.hidden = true;
    if (answer.status === 200) put(part, await answer.text());
  }

  async function watch(part) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, EVERY));
      if (document.hidden) continue;
      try {
        await refresh(part);
      } catch {
        lost.hidden = false; // it has ended, or will answer again
      }
    }
  }

  for (const part of document.querySelectorAll("[data-live]")) watch(part);
})();

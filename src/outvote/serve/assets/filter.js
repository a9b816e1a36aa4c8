"use strict";

/*
 * The table of causes follows what one types. The address follows too, so that it can be kept;
 * an answer that was overtaken by another question is dropped.
 */
(() => {
  const form = document.getElementById("filter");
  const rows = document.getElementById("rows");
  const base = document.body.dataset.base;
  const VISIT = `outvote-visit-${base}`;
  const now = Date.now() / 1000;
  let asked = null;
  let page = "0";
  let last = null; // question that was asked

  for (const option of form.querySelectorAll("[data-ago]")) {
    option.value = String(Math.round(now - Number(option.dataset.ago)));
  }
  const visit = form.querySelector("[data-visit]");
  visit.value = localStorage.getItem(VISIT) ?? "0";
  addEventListener("pagehide", () => localStorage.setItem(VISIT, String(Math.round(Date.now() / 1000))));

  function query() {
    const fields = [...new FormData(form)].filter(([name, value]) => value && !(name === "sort" && value === "harm"));
    if (page !== "0") fields.push(["page", page]);
    return new URLSearchParams(fields).toString();
  }

  async function show() {
    asked?.abort();
    asked = new AbortController();
    const wanted = query();
    last = wanted;
    const began = performance.now();
    try {
      const answer = await fetch(`${form.dataset.rows}?${wanted}`, { signal: asked.signal });
      const made = document.createElement("template");
      made.innerHTML = await answer.text();
      rows.replaceChildren(made.content);
      rows.dataset.ms = String(Math.round(performance.now() - began));
      rows.dataset.query = wanted;
      history.replaceState(null, "", wanted ? `?${wanted}` : location.pathname);
    } catch (error) {
      if (error.name !== "AbortError") document.getElementById("lost").hidden = false;
    }
  }

  // A text tells of every letter, a choice once it is made: some browsers tell both twice.
  for (const name of ["input", "change"]) {
    form.addEventListener(name, () => {
      page = "0";
      if (query() !== last) show();
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  rows.addEventListener("click", (event) => {
    const { sort, page: to } = event.target.dataset;
    if (sort) {
      form.elements.sort.value = form.elements.sort.value === sort ? "harm" : sort;
      page = "0";
    }
    if (to) page = to;
    if (sort || to) show();
  });
})();

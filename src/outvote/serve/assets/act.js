"use strict";

/*
 * Buttons and forms with data-post send their fields as JSON; what is wrong is said beside them.
 * data-then="reload" shows the page anew, data-saves keeps a text while one types.
 */
window.outvoteSend = async (address, fields) => {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-outvote": "1" },
    body: JSON.stringify(fields),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? `It was refused (${answer.status}).`);
  return told;
};

(() => {
  const say = (element, text) => {
    const place = element.closest("[data-acts]")?.querySelector("[data-said]");
    if (place) place.textContent = text;
  };

  async function act(element, fields) {
    try {
      await outvoteSend(element.dataset.post, fields);
      say(element, element.hasAttribute("data-saves") ? "Saved." : "Done.");
      if (element.dataset.then === "reload") location.reload();
    } catch (error) {
      say(element, error.message);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-post]");
    if (button) act(button, JSON.parse(button.dataset.value ?? "{}"));
  });

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-post]");
    if (!form) return;
    event.preventDefault();
    act(form, Object.fromEntries(new FormData(form)));
  });

  for (const form of document.querySelectorAll("form[data-saves]")) {
    let waiting;
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => form.requestSubmit(), 800);
    });
  }
})();

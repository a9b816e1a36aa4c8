"use strict";

/* Files are sent one after the other; the first makes the folder of the run, the model its targets. */
(() => {
  const get = (id) => document.getElementById(id);
  const [form, drop, files, given, said] = ["models", "drop", "files", "given", "said"].map(get);
  let run = "";

  async function send(file) {
    const line = document.createElement("li");
    line.textContent = `${file.name}: being looked at …`;
    given.append(line);
    const fields = new URLSearchParams({ name: file.name, run });
    const answer = await fetch(`${form.dataset.file}?${fields}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream", "x-outvote": "1" },
      body: file,
    });
    const told = await answer.json();
    line.className = answer.ok ? "good" : "bad";
    line.textContent = answer.ok ? `${told.role} ${told.name}: ${told.told}` : told.error;
    if (!answer.ok) return;
    run = told.run;
    if (told.targets) offer(told.targets);
  }

  function offer(targets) {
    const made = targets.map(({ name, chosen }) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "target" });
      box.value = name;
      box.checked = chosen;
      label.append(box, ` ${name}`);
      return label;
    });
    get("choices").replaceChildren(...made);
    get("targets").hidden = false;
    get("start").disabled = false;
  }

  async function sendAll(list) {
    said.textContent = "";
    for (const file of list) {
      try {
        await send(file);
      } catch (error) {
        said.textContent = error.message;
      }
    }
  }

  files.addEventListener("change", () => sendAll([...files.files]));
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    sendAll([...event.dataTransfer.files]);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    get("start").disabled = true;
    said.textContent = "Starting …";
    const targets = new FormData(form).getAll("target");
    try {
      const told = await outvoteSend(form.dataset.check, { run, targets });
      location.href = form.dataset.at + told.at;
    } catch (error) {
      said.textContent = error.message;
      get("start").disabled = false;
    }
  });
})();

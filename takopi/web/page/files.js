// Files that go with the next message: chosen, pasted or dropped, and kept until it was sent.

import { newKey, sendFile } from "./link.js";

const MOST = 10;
const MAX_BYTES = 20 * 1024 * 1024;

export function attachments({ isOn, say }) {
  const find = (id) => document.getElementById(id);
  const [list, button, picker, drop] = ["files", "attach", "picker", "drop"].map(find);
  let chosen = [];
  let depth = 0;

  const size = (bytes) => bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} kB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;

  const draw = () => {
    list.hidden = chosen.length === 0;
    list.replaceChildren(...chosen.map((one, index) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      const state = document.createElement("small");
      const remove = document.createElement("button");
      name.textContent = one.file.name;
      state.textContent = one.sending ? "sending…" : size(one.file.size);
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Do not send ${one.file.name}`);
      remove.addEventListener("click", () => {
        chosen.splice(index, 1);
        draw();
        (list.querySelectorAll("button")[Math.min(index, chosen.length - 1)] ?? button).focus();
      });
      item.append(name, state, remove);
      return item;
    }));
  };

  const add = (files) => {
    if (!isOn()) {
      say("Files are off here: set files.enabled = true in takopi.toml.");
      return;
    }
    for (const file of files) {
      if (chosen.length >= MOST) {
        say(`A message takes ${MOST} files.`);
        break;
      }
      if (file.size > MAX_BYTES) say(`${file.name} is over 20 MB, which is the most.`);
      else chosen.push({ file, key: newKey(), id: null, sending: false });
    }
    draw();
  };

  // What has arrived is not sent again when the rest is tried once more.
  const upload = async () => {
    const sent = chosen;
    for (const one of sent) {
      if (one.id !== null) continue;
      one.sending = true;
      draw();
      try {
        one.id = (await sendFile(one.file, one.key)).id;
      } finally {
        one.sending = false;
        draw();
      }
    }
    return sent.map((one) => one.id);
  };

  const forget = (ids) => {
    chosen = chosen.filter((one) => !ids.includes(one.id));
    draw();
  };

  const brings = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (delta) => {
    depth = Math.max(depth + delta, 0);
    drop.hidden = depth === 0;
  };

  button.addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    add(picker.files);
    picker.value = "";
    find("text").focus();
  });
  find("text").addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    if (files.length) {
      event.preventDefault();
      add(files);
    }
  });
  document.addEventListener("dragenter", (event) => { if (brings(event)) over(1); });
  document.addEventListener("dragleave", (event) => { if (brings(event)) over(-1); });
  document.addEventListener("dragover", (event) => { if (brings(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    depth = 0;
    over(0);
    add(event.dataTransfer.files);
    find("text").focus();
  });
  return { count: () => chosen.length, upload, forget, show: () => { button.hidden = !isOn(); } };
}

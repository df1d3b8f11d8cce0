// Where a message is written: it grows, completes commands, and keeps its text until it was sent.

import { firstWords } from "./bubble.js";

export function composer({ onSend, commands, files }) {
  const find = (id) => document.getElementById(id);
  const [form, text, list, replying, replied] = ["composer", "text", "commands", "replying", "replied"].map(find);
  // On a screen keyboard Enter begins a line, as there is no Shift to hold; the button sends.
  const hasNoKeys = matchMedia("(hover: none) and (pointer: coarse)");
  let replyTo = null;
  let shown = [];
  let chosen = 0;

  const grow = () => {
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight + 2}px`;
  };

  const complete = () => {
    const typed = /^\/(\w*)$/.exec(text.value);
    shown = typed ? commands().filter((c) => c.name.startsWith(typed[1].toLowerCase())) : [];
    chosen = Math.min(chosen, Math.max(shown.length - 1, 0));
    list.hidden = shown.length === 0;
    list.replaceChildren(...shown.map((command, index) => {
      const item = document.createElement("li");
      const name = document.createElement("b");
      const what = document.createElement("span");
      item.id = `command-${index}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", index === chosen);
      name.textContent = `/${command.name}`;
      what.textContent = command.description;
      item.append(name, what);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(index); });
      return item;
    }));
    if (shown.length) text.setAttribute("aria-activedescendant", `command-${chosen}`);
    else text.removeAttribute("aria-activedescendant");
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };

  const take = (index) => {
    text.value = `/${shown[index].name} `;
    chosen = 0;
    complete();
    text.focus();
  };

  const reply = (message) => {
    replyTo = message;
    replying.hidden = message === null;
    if (message !== null) replied.textContent = firstWords(message.text.text);
    text.focus();
  };

  const submit = async () => {
    const words = text.value.trim();
    if (form.ariaBusy === "true" || (!words && files().count() === 0)) return;
    const to = replyTo;
    text.value = "";
    reply(null);
    complete();
    grow();
    form.ariaBusy = "true";
    const isSent = await onSend(words, to?.id ?? null);
    form.ariaBusy = "false";
    if (!isSent && !text.value) {
      text.value = words;
      if (to) reply(to);
      grow();
    }
  };

  text.addEventListener("input", () => { chosen = 0; complete(); grow(); });
  text.addEventListener("blur", () => { list.hidden = true; });
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const open = !list.hidden;
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
      complete();
    } else if (open && (event.key === "Tab" || event.key === "Enter") && text.value !== `/${shown[chosen].name}`) {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Escape") {
      if (open) list.hidden = true;
      else reply(null);
    } else if (event.key === "Enter" && !event.shiftKey && !hasNoKeys.matches) {
      event.preventDefault();
      submit();
    }
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("unreply").addEventListener("click", () => reply(null));
  text.focus();
  return { reply };
}

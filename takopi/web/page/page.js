// The chat: what the store says is what is shown, whatever order it is heard in.

import { bubble } from "./bubble.js";
import { composer } from "./composer.js";
import { attachments } from "./files.js";
import { follow, get, newKey, post } from "./link.js";

const find = (id) => document.getElementById(id);
const [chat, main, state, banner, toast, older, welcome] =
  [find("chat"), document.querySelector("main"), ...["state", "banner", "toast", "older", "welcome"].map(find)];
const messages = new Map();
const pressed = new Map();
let commands = [];
let takesFiles = false;
let connected = false;
let toastTimer;

const writing = composer({ onSend: send, commands: () => commands, files: () => files });
const files = attachments({ isOn: () => takesFiles, say });

function say(text) {
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.hidden = true; }, 5000);
}

function showState() {
  const working = [...messages.values()].filter((m) => m.silent).length;
  const words = !connected ? "not connected" : working ? "working…" : "ready";
  if (state.textContent !== words) state.textContent = words;
  state.classList.toggle("working", connected && working > 0);
  banner.hidden = connected;
  if (!connected && !banner.textContent) banner.textContent = "takopi is away. Trying again…";
  welcome.hidden = messages.size > 0;
}

function draw(message) {
  return bubble(message, {
    replied: messages.get(message.reply_to),
    onReply: writing.reply,
    onPress: press,
    onShow: (id) => {
      const there = find(`m${id}`);
      there?.scrollIntoView({ block: "center" });
      there?.focus();
    },
  });
}

function put(message) {
  const known = messages.get(message.id);
  if (known && known.change >= message.change) return;
  const old = find(`m${message.id}`);
  if (message.deleted) {
    messages.delete(message.id);
    old?.remove();
    return;
  }
  messages.set(message.id, message);
  const node = draw(message);
  if (old) {
    const focused = old.contains(document.activeElement) ? document.activeElement.dataset.data : undefined;
    old.replaceWith(node);
    if (focused) node.querySelector(`[data-data="${CSS.escape(focused)}"]`)?.focus();
    return;
  }
  const next = [...chat.children].find((other) => Number(other.id.slice(1)) > message.id);
  chat.insertBefore(node, next ?? null);
}

const isAtEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 120;
const showEnd = () => { main.scrollTop = main.scrollHeight; };

// Whoever reads further up is left where they are.
function keepingEnd(change) {
  const wasAtEnd = isAtEnd();
  change();
  showState();
  if (wasAtEnd) showEnd();
}

// A keyboard that opens, or a message that grows, takes room from below and must not hide the end.
let staysAtEnd = true;
main.addEventListener("scroll", () => { staysAtEnd = isAtEnd(); });
new ResizeObserver(() => { if (staysAtEnd) showEnd(); }).observe(main);

async function send(text, replyTo) {
  const body = { text, key: newKey() };
  if (replyTo !== null) body.reply_to = replyTo;
  try {
    if (files.count()) body.files = await files.upload();
    await post("/send", body);
    files.forget(body.files ?? []);
    showEnd();
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

async function press(message, button, node) {
  const key = newKey();
  pressed.set(key, node);
  node.disabled = true;
  try {
    await post("/press", { message: message.id, data: button.data, key });
  } catch (error) {
    pressed.delete(key);
    node.disabled = false;
    say(error.message);
  }
}

function answered({ key, text }) {
  const node = pressed.get(key);
  if (!pressed.delete(key)) return;
  node.disabled = false;
  if (text) say(text);
}

async function load() {
  const history = await get("/history");
  messages.clear();
  chat.replaceChildren();
  commands = history.commands;
  takesFiles = history.files;
  files.show();
  older.hidden = !history.more;
  connected = true;
  keepingEnd(() => history.messages.forEach(put));
  showEnd();
  return history.change;
}

older.addEventListener("click", async () => {
  try {
    const first = Math.min(...messages.keys());
    const history = await get(`/history?before=${first}`);
    const height = main.scrollHeight;
    history.messages.forEach(put);
    older.hidden = !history.more;
    main.scrollTop += main.scrollHeight - height;
  } catch (error) {
    say(error.message);
  }
});

function lost(text = "takopi is away. Trying again…") {
  connected = false;
  banner.textContent = text;
  showState();
}

async function start() {
  let change;
  try {
    change = await load();
  } catch (error) {
    lost(error.message);
    setTimeout(start, 1000);
    return;
  }
  follow(change, {
    onOpen: () => { connected = true; showState(); },
    onLost: () => lost(),
    on: {
      message: (message) => keepingEnd(() => put(message)),
      toast: answered,
      commands: (items) => { commands = items; },
      reset: () => { load().catch((error) => lost(error.message)); },
    },
  });
}

start();

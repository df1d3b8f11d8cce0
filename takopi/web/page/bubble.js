// A message as nodes. What people and engines wrote becomes text nodes only, never markup.

const TAGS = {
  bold: "strong", italic: "em", underline: "u", strikethrough: "s",
  code: "code", pre: "pre", quote: "blockquote", spoiler: "span", link: "a",
};

function wrap(mark) {
  const node = document.createElement(TAGS[mark.kind] ?? "span");
  if (mark.kind === "link" && /^(https?|mailto):/i.test(mark.extra)) {
    node.href = mark.extra;
    node.target = "_blank";
    node.rel = "noopener noreferrer";
  }
  if (mark.kind === "spoiler") {
    node.className = "spoiler";
    node.tabIndex = 0;
  }
  if (mark.kind === "pre") {
    node.tabIndex = 0;
    node.dataset.language = mark.extra;
    node.setAttribute("role", "region");
    node.setAttribute("aria-label", mark.extra ? `${mark.extra} code` : "Code");
  }
  return node;
}

// A block stands on lines of its own already.
function between(text, afterBlock, beforeBlock) {
  const begun = afterBlock ? text.replace(/^\n{1,2}/, "") : text;
  return beforeBlock ? begun.replace(/\n{1,2}$/, "") : begun;
}

// Offsets count UTF-16 units, as JavaScript's strings do.
export function render({ text, marks }, from = 0, to = text.length, inside = marks) {
  const out = document.createDocumentFragment();
  const sorted = [...inside].sort((a, b) => a.offset - b.offset || b.length - a.length);
  let at = from;
  let afterBlock = false;
  while (sorted.length) {
    const mark = sorted.shift();
    const start = Math.max(mark.offset, at);
    const end = Math.min(mark.offset + mark.length, to);
    if (end <= start) continue;
    const isBlock = mark.kind === "pre" || mark.kind === "quote";
    if (start > at) out.append(between(text.slice(at, start), afterBlock, isBlock));
    const within = [];
    while (sorted.length && sorted[0].offset < end) within.push(sorted.shift());
    const node = wrap(mark);
    node.append(render({ text, marks }, start, end, within));
    out.append(node);
    // What begins inside and goes on outside is drawn in both.
    sorted.unshift(...within.filter((m) => m.offset + m.length > end));
    at = end;
    afterBlock = isBlock;
  }
  if (at < to) out.append(between(text.slice(at, to), afterBlock, false));
  return out;
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

export function firstWords(text) {
  const line = text.slice(0, 500).trim().replace(/\s+/g, " ");
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
}

export function bubble(message, { replied, onReply, onPress, onShow }) {
  const item = element("li", `message ${message.author}${message.silent ? " silent" : ""}`);
  item.id = `m${message.id}`;
  item.tabIndex = -1;
  const box = element("article", "bubble");
  box.setAttribute("aria-label", message.author === "person" ? "You" : "takopi");
  if (message.reply_to !== null) {
    const quoted = element("button", "quoted", replied ? firstWords(replied.text.text) : "an earlier message");
    quoted.type = "button";
    quoted.setAttribute("aria-label", `Show what this replies to: ${quoted.textContent}`);
    quoted.addEventListener("click", () => onShow(message.reply_to));
    box.append(quoted);
  }
  const words = element("div", "words");
  words.append(render(message.text));
  box.append(words);
  if (message.file !== null) {
    const link = element("a", "file", `↓ ${message.file}`);
    link.href = `/file/${message.id}`;
    link.download = message.file;
    box.append(link);
  }
  for (const upload of message.uploads) {
    const link = element("a", "file upload", `↑ ${upload.name}`);
    link.href = `/upload/${upload.id}`;
    link.download = upload.name;
    box.append(link);
  }
  item.append(box);
  for (const row of message.buttons) {
    const line = element("div", "row");
    for (const button of row) {
      const node = element("button", "", button.label);
      node.type = "button";
      node.dataset.data = button.data;
      node.addEventListener("click", () => onPress(message, button, node));
      line.append(node);
    }
    item.append(line);
  }
  const foot = element("div", "foot");
  const reply = element("button", "reply", "Reply");
  reply.type = "button";
  reply.addEventListener("click", () => onReply(message));
  const sent = new Date(message.sent_ms);
  const clock = { hour: "2-digit", minute: "2-digit" };
  const isToday = sent.toDateString() === new Date().toDateString();
  const time = element("time", "", sent.toLocaleString([], isToday ? clock : { day: "numeric", month: "short", ...clock }));
  time.dateTime = sent.toISOString();
  foot.append(reply, time);
  item.append(foot);
  let start = null;
  box.addEventListener("pointerdown", (event) => { start = event.pointerType === "touch" ? event.clientX : null; });
  box.addEventListener("pointerup", (event) => {
    if (start !== null && Math.abs(event.clientX - start) > 60) onReply(message);
    start = null;
  });
  return item;
}

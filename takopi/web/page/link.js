// The way to takopi: requests that say in a sentence why they failed, and events that come back.

export function newKey() {
  return crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join("");
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("takopi cannot be reached.");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error ?? `takopi answered ${answer.status}.`);
  return body;
}

export const get = (path) => ask(path);

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

export const sendFile = (file, key) =>
  ask(`/upload?${new URLSearchParams({ name: file.name || "file", key })}`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: file,
  });

// A browser gives up for good when it is answered with an error, so we begin again ourselves.
export function follow(after, { onOpen, onLost, on }) {
  let last = after;
  let source;
  const open = () => {
    source = new EventSource(`/events?after=${last}`);
    source.onopen = onOpen;
    source.onerror = () => {
      onLost();
      source.close();
      setTimeout(open, 1000);
    };
    for (const [name, handle] of Object.entries(on)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) last = Number(event.lastEventId);
        handle(JSON.parse(event.data));
      });
    }
  };
  open();
}

"""A package registry on loopback that has the CLIs as tiny shell scripts, and every way to fail."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

# A node that knows its version and runs anything as a shell script.
NODE = 'if [ "$1" = --version ]; then echo v{version}; else exec sh "$@"; fi'
SAYS_VERSION = "echo {version}"
PLATFORM = r"-(linux|darwin)-(x64|arm64)(-baseline)?$"
ARCHES = ("x64", "arm64")
TRIPLES = {
    ("linux", "x64"): "x86_64-unknown-linux-musl",
    ("linux", "arm64"): "aarch64-unknown-linux-musl",
    ("darwin", "x64"): "x86_64-apple-darwin",
    ("darwin", "arm64"): "aarch64-apple-darwin",
}


class Registry:
    """What is on offer, and what goes wrong. `asked` has the path of every request.

    `missing` is a pattern of names, `spoilt` the name of a package that is not what was promised,
    `says` what a CLI says of its version, `silent_for` how many requests get no answer.
    """

    def __init__(self, script: Path) -> None:
        pinned = re.search(r"^claude=.*$", script.read_text(encoding="utf-8"), re.MULTILINE)
        assert pinned is not None
        found: list[tuple[str, str]] = re.findall(r"(\w+)=(\S+)", pinned[0])
        self.versions = dict(found)
        self.url = ""
        self.asked: list[str] = []
        self.says: dict[str, str] = {}
        self.missing = ""
        self.spoilt = ""
        self.silent_for = 0

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.silent_for > 0:
            self.silent_for -= 1
            return 503, b"{}"
        name, _, file = unquote(path).strip("/").partition("/-/")
        if re.fullmatch(self.missing, name):
            return 404, b"{}"
        if file:
            version = file.removesuffix(".tgz")
            return 200, self._tarball(name, version)
        return 200, json.dumps(self._packument(name)).encode()

    def _packument(self, name: str) -> dict[str, object]:
        cli = next(cli for cli in ("claude", "codex", "opencode", "pi", "node") if cli in name)
        version = self.versions[cli]
        versions = [version]
        if cli == "codex":
            # codex has its platforms as versions of the one package.
            versions += [f"{version}-{os}-{arch}" for os in ("linux", "darwin") for arch in ARCHES]
        return {
            "name": name,
            "dist-tags": {"latest": version},
            "versions": {version: self._release(name, version) for version in versions},
        }

    def _release(self, name: str, version: str) -> dict[str, object]:
        package = b"spoilt" if name == self.spoilt else self._tarball(name, version)
        digest = base64.b64encode(hashlib.sha512(package).digest()).decode()
        dist = {"tarball": f"{self.url}/{name}/-/{version}.tgz", "integrity": f"sha512-{digest}"}
        return {"name": name, "version": version, "dist": dist}

    def _tarball(self, name: str, version: str) -> bytes:
        says = next((said for cli, said in self.says.items() if cli in name), version)
        return _tarball(name, version, says=re.sub(PLATFORM, "", says))


def _tarball(name: str, version: str, *, says: str) -> bytes:
    """A package with one program, where the real one has it, that says its version."""
    files = {"package.json": json.dumps({"name": name, "version": version})}
    platform = re.search(PLATFORM, name) or re.search(PLATFORM, version)
    if "pi-coding-agent" in name:
        files["dist/bundle/cli.js"] = SAYS_VERSION.format(version=says)
    elif platform and "claude" in name:
        files["claude"] = SAYS_VERSION.format(version=says)
    elif platform and "codex" in name:
        triple = TRIPLES[platform[1], platform[2]]
        files[f"vendor/{triple}/bin/codex"] = SAYS_VERSION.format(version=says)
    elif platform:
        program = "node" if name.startswith("node-") else "opencode"
        body = NODE if program == "node" else SAYS_VERSION
        files[f"bin/{program}"] = body.format(version=says)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for path, text in files.items():
            content = text.encode() if path == "package.json" else f"#!/bin/sh\n{text}\n".encode()
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    # The time of day is in the header of what gzip makes, and the digest must not depend on it.
    made = bytearray(packed.getvalue())
    made[4:8] = bytes(4)
    return bytes(made)


@contextmanager
def serve_registry(script: Path) -> Generator[Registry]:
    """Serve the versions that `script` pins."""
    registry = Registry(script)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()

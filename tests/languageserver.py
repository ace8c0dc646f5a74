"""A client of a language server, as an editor is one: JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import queue
import subprocess
import threading

PATIENCE = 60  # seconds until a server that says nothing counts as broken


class Client:
    """Talks to one server. What the server asks is answered with the settings of an editor."""

    def __init__(self, command, settings):
        self._settings = settings
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._incoming = queue.Queue()
        self._requests = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.notify("initialized", {})
        self.notify("workspace/didChangeConfiguration", {"settings": self._settings})
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.kill()
        self._server.wait()

    def open(self, uri, text):
        """Open a document and return what the server finds wrong with it."""
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self._await(
            lambda message: (
                message.get("method") == "textDocument/publishDiagnostics"
                and message["params"]["uri"] == uri
            )
        )["params"]["diagnostics"]

    def request(self, method, params):
        """Ask the server, and return its answer."""
        self._requests += 1
        number = self._requests
        self._send({"id": number, "method": method, "params": params})
        answer = self._await(
            lambda message: message.get("id") == number and "method" not in message
        )
        return answer["result"]

    def notify(self, method, params):
        """Tell the server something."""
        self._send({"method": method, "params": params})

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._server.stdin.flush()

    def _read(self):
        while header := self._server.stdout.readline():
            length = int(header.split(b":")[1])
            self._server.stdout.readline()
            self._incoming.put(json.loads(self._server.stdout.read(length)))

    def _await(self, is_wanted):
        """Return the first message that is wanted; answer what is asked in between."""
        while True:
            message = self._incoming.get(timeout=PATIENCE)
            if is_wanted(message):
                return message
            if "id" in message and "method" in message:
                items = message["params"].get("items", []) if message.get("params") else []
                result = [self._settings.get(item.get("section")) for item in items] or None
                self._send({"id": message["id"], "result": result})

"""A tiny model2vec model, and a server that embeds with it over HTTP, both made by the tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# Words that mean the same point the same way; each row is one meaning.
MEANINGS = (
    "lantern lamp light",
    "river stream water",
    "teal green colour",
    "dawn morning early",
    "stone rock clay",
    "bridge crossing ford",
    "boat ferry ship",
)


def make_model(folder: Path, seed: int = 1, dimension: int = 16) -> Path:
    """Save a model of some words to a folder, and return the folder."""
    import numpy as np
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    random = np.random.default_rng(seed)
    words, rows = ["[PAD]", "[UNK]"], [np.zeros(dimension), np.zeros(dimension)]
    for meaning in MEANINGS:
        direction = random.normal(size=dimension)
        for word in meaning.split():
            words.append(word)
            rows.append(direction + 0.1 * random.normal(size=dimension))
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.normalizer = Lowercase()
    StaticModel(np.asarray(rows, dtype=np.float32), tokenizer, config={}).save_pretrained(folder)
    return folder


class Server:
    """``POST /v1/embeddings``, answering what it is told to: vectors, or an error."""

    def __init__(self) -> None:
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.drop = 0
        self.url = ""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        rows = [{"index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])]
        # Servers need not keep the order; the index tells it.
        return {"object": "list", "data": rows[::-1][self.drop :]}


def vector(text: str) -> list[float]:
    """A vector by meanings: how many words of each the text holds, and a last number so that none is empty."""
    words = "".join(char if char.isalnum() else " " for char in text.lower()).split()
    return [float(sum(word in meaning.split() for word in words)) for meaning in MEANINGS] + [0.1]


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            server.headers.append(dict(self.headers))
            status = server.status if self.path == "/v1/embeddings" else 404
            data = json.dumps(server.answer(body) if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()

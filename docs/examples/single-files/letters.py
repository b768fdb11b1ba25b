"""An embedder that needs no model: how often each letter occurs."""

from wheelmem import hookimpl


class Letters:
    name = "letters"
    model = "letters-1"
    dimension = 26

    def embed(self, texts):
        return [[text.lower().count(chr(ord("a") + n)) / (len(text) or 1) for n in range(26)] for text in texts]


@hookimpl
def register_embedders(register, settings):
    register(Letters())

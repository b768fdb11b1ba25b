"""Searches a second over HTTP: see ``serving.py``, which this runs.

This file's name hides the standard library's ``http`` from every script that is run in this folder. So when it is imported
under that name, it puts the library's own in its place.
"""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    from serving import main

    main()
else:
    here = [place for place in sys.path if Path(place or ".").resolve() == Path(__file__).resolve().parent]
    sys.path[:] = [place for place in sys.path if place not in here]
    del sys.modules[__name__]
    import_module(__name__)
    sys.path[:0] = here

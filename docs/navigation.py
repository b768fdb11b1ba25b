"""The order of the pages. A page that is named here and not there yet is left out; one that is there and not named comes last."""

from pathlib import Path

PAGES = {
    "Home": "index.md",
    "Start": ["install.md", "tutorial.md", "concepts.md", "finding.md"],
    "Doors": ["cli.md", "python.md", "http.md", "datasette.md", "mcp.md", "client.md"],
    "Around it": ["honcho.md", "memory-command.md", "backup.md", "settings.md"],
    "Plugins": ["plugins.md", "hooks.md"],
    "What holds": ["security.md", "benchmarks.md"],
}


def on_config(config):
    there = {path.name for path in Path(config["docs_dir"]).glob("*.md")}
    nav = []
    named = set()
    for title, pages in PAGES.items():
        if isinstance(pages, str):
            nav.append({title: pages})
            named.add(pages)
            continue
        found = [page for page in pages if page in there]
        named.update(found)
        nav.append({title: found})
    rest = sorted(there - named)
    if rest:
        nav.append({"More": rest})
    config["nav"] = nav
    return config

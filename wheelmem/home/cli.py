"""The `memory` command: verbs over an agent's home. Exit 0 done, 1 refused or failed, 2 wrong use.

What each verb imports beyond the log it imports itself, so that `encode` starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from . import session
from .folder import Home, check_words
from .log import Log, Record, drain
from .record import Refused, compact, dump, parse_json, record_line, short_host

# --- arguments ---------------------------------------------------------------------------------------------------------


class Args:
    """The flags and words of a call: a flag's text, True for a switch, None when it is not given."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.values: dict[str, str] = {}
        self.switches: set[str] = set()
        self.words: list[str] = []

    def __getitem__(self, flag: str) -> str | None:
        return self.values.get(flag)

    def on(self, flag: str) -> bool:
        return flag in self.switches

    def needed(self, flag: str, what: str) -> str:
        value = self[flag]
        if value is None:
            raise Wrong(f"{self.verb} needs --{flag} {what}")
        return value

    def whole(self, flag: str, default: int, unit: str = "") -> int:
        """The value of a flag that is a whole number, 0 or more."""
        value = self[flag]
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 16):
            raise Wrong(f"--{flag} is a whole number{unit}, 0 or more, not {value!a}")
        return int(value)


class Wrong(Refused):
    """Wrong use: exit 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=2)


class Verb(NamedTuple):
    run: Callable[[Args], int | None]
    words: str  # the words it takes, as the usage shows them: A B must be there, [A] may
    flags: str  # name=VALUE takes a value, a bare name is a switch
    does: str


def parse(verb: str, given: list[str]) -> Args | None:
    """The arguments of a verb; None when help is asked for."""
    flags = dict(flag.partition("=")[::2] for flag in VERBS[verb].flags.split())
    args = Args(verb)
    words = iter(given)
    for word in words:
        if word in ("--help", "-h"):
            return None
        if word == "--":
            args.words += words
        elif not word.startswith("-") or word == "-":
            args.words.append(word)
        else:
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or name not in flags:
                if "--help" in given:
                    return None
                raise Wrong(f"{verb}: unknown flag {word.partition('=')[0]} (see memory {verb} --help)")
            if not flags[name]:
                if equals:
                    raise Wrong(f"{verb}: --{name} is a switch, it takes no value")
                args.switches.add(name)
                continue
            if not equals:
                following = next(words, None)
                if following == "--help":
                    return None
                if following is None or following.startswith("--"):
                    raise Wrong(f"{verb}: --{name} needs a value; one that begins with -- is given as --{name}=VALUE")
                value = following
            args.values[name] = value
    wanted = VERBS[verb].words.split()
    least = sum(not word.startswith("[") for word in wanted)
    if len(args.words) < least:
        raise Wrong(f"{verb} needs {' '.join(wanted)} (see memory {verb} --help)")
    if len(args.words) > len(wanted):
        raise Wrong(f"{verb}: unexpected {args.words[len(wanted)]!a} (see memory {verb} --help)")
    return args


def usage(verb: str | None = None) -> str:
    if verb is None:
        verbs = "\n".join(f"  {name:8} {VERBS[name].does}" for name in VERBS)
        return f"usage: memory VERB [--home DIR | --name NAME] ...\n\n{verbs}\n\nmemory VERB --help tells more.\n"
    flags = "".join(f" [--{flag.replace('=', ' ')}]" for flag in VERBS[verb].flags.split())
    words = " ".join(filter(None, ["memory", verb, VERBS[verb].words]))
    return f"usage: {words}{flags}\n\n{VERBS[verb].does}\n"


# --- what the verbs share ----------------------------------------------------------------------------------------------


def resolve_home(args: Args) -> Home:
    return find_home(args["home"], args["name"])


def find_home(folder: str | None, name: str | None) -> Home:
    """--home, else $AGENT_HOME, else --name under ~/.agents."""
    if folder is not None:
        if not folder:
            raise Wrong("--home is empty: give a folder")
        return Home(check_words("--home", folder))
    if os.environ.get("AGENT_HOME"):
        return Home(check_words("$AGENT_HOME", os.environ["AGENT_HOME"]))
    if name is None:
        raise Refused("which home? give --home DIR or --name NAME, or set $AGENT_HOME")
    if name in ("", ".", "..") or "/" in name:
        raise Refused(f"--name is one path segment under ~/.agents, not {name!a}")
    return Home(os.path.join(agents_folder(), check_words("--name", name)))


def agents_folder() -> str:
    return os.path.join(os.path.expanduser("~"), ".agents")


def log_of(args: Args) -> Log:
    home = resolve_home(args)
    return Log(home, home.log_name(args["path"]))


def given_text(args: Args, flag: str, what: str) -> str:
    """The text of a flag, or of stdin for `-`."""
    value = args.needed(flag, what)
    if value != "-":
        return value
    try:
        if sys.stdin is None:
            raise Refused("stdin is closed: there is no text to read")
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"what came on stdin is no UTF-8 at byte {error.start}") from None


def live(home: Home, args: Args) -> set[str]:
    return session.live_ids(home, args.whole("stale", session.STALE_MS, " of milliseconds"))


def others_of(home: Home, args: Args) -> Callable[[Record], bool]:
    """Whether a record belongs to another live session than --for-session."""
    own = args["for-session"]
    alive = live(home, args)

    def other(record: Record) -> bool:
        author = record.get("session")
        return isinstance(author, str) and author != own and author in alive

    return other


def out(text: str) -> None:
    print(text)


# --- the log -----------------------------------------------------------------------------------------------------------


def encode(args: Args) -> None:
    if (args["body"] is None) == (args["body-json"] is None):
        raise Wrong("encode needs one of --body TEXT, --body - (stdin) and --body-json JSON")
    if args["body-json"] is not None:
        try:
            body = compact(args["body-json"])
        except ValueError as error:
            raise Wrong(f"--body-json is no JSON: {error}") from None
    else:
        text = given_text(args, "body", "TEXT")
        body = dump(text.removesuffix("\n") if args["body"] == "-" else text)
    tags = [tag.strip() for tag in (args["tags"] or "").split(",") if tag.strip()]
    if args["scope"]:
        tags.append(args["scope"])
    for tag in tags:
        check_words("a tag", tag)
    log = log_of(args)
    owner = session.required(log.home, args["session"])
    cwd = _utf8(os.path.realpath(os.getcwd()))

    def line(id: str) -> bytes:
        return record_line(id, owner, short_host(), cwd, body, tags)

    line("0" * 26)  # what cannot be kept is refused before anything is touched
    with log.home.exclusive():
        session.register(log.home, owner)
        id = log.append(line)
    out(id)


def read(args: Args) -> None:
    log = log_of(args)
    scope = args["scope"]
    other = others_of(log.home, args) if args["for-session"] is not None else None
    args.whole("stale", 0)
    under = None
    if args["under"] is not None:
        from .boundary import Boundaries, below, find_config

        check_words("--under", args["under"])
        under = os.path.realpath(args["under"])
        boundaries = Boundaries(find_config(args["config"]))
    matched = legacy = count = 0
    foreign: dict[str, int] = {}
    write = sys.stdout.buffer.write
    quiet = args.on("count")
    for raw, record in log.read():
        if scope is not None and record.get("scope") != scope and scope not in (record.get("tags") or ()):
            continue
        if under is not None:
            node, basis = boundaries.of_record(record)
            if basis == "no-cwd":
                legacy += 1
                continue
            host = record.get("host")
            if isinstance(host, str) and host != boundaries.host:
                foreign[host] = foreign.get(host, 0) + 1
                continue
            if not below(node, under):
                continue
            matched += 1
        if other is not None and other(record):
            continue
        count += 1
        if not quiet:
            write(raw.strip() + b"\n")
    if quiet:
        out(str(count))
    if under is not None:
        hosts = " ".join(f"{host}={foreign[host]}" for host in sorted(foreign)) or "none"
        print(f"under {under}: {matched} matched; foreign-host: {hosts}; legacy: {legacy}", file=sys.stderr)


def fold(args: Args) -> None:
    from .boundary import Boundaries, find_config

    boundaries = Boundaries(find_config(args["config"]))
    tails: dict[tuple[str, str], str] = {}
    write = sys.stdout.write
    for _, record in log_of(args).read():
        found = boundaries.of_record(record)
        tail = tails.get(found)
        if tail is None:
            tail = tails[found] = f',"node":{dump(found[0])},"basis":{dump(found[1])}}}\n'
        id = record["id"]
        write(f'{{"id":"{id}"{tail}' if id.isalnum() else f'{{"id":{dump(id)}{tail}')


def run_drain(args: Args) -> None:
    from . import lock

    log = log_of(args)
    keep = args.whole("keep", 5)
    chosen = args.on("completed-only") or args["for-session"] is not None
    if args["for-session"] is not None:
        session.check_id(args["for-session"])
    retained = others_of(log.home, args) if chosen else lambda record: False
    if not log.home.exists():
        out("drain: nothing to archive (raw log empty)")
        return
    with lock.guard(log.home, session.current(log.home, args["session"]), "drain"):
        done = drain(log, lambda record: not retained(record), keep)
    if done.archive is None:
        why = f"{done.retained} record(s) retained" if done.retained else "raw log empty"
        out(f"drain: nothing to archive ({why})")
    else:
        out(f"drained {done.records} record(s) -> {done.archive}")
        out(f".bak/: {done.kept} kept, {done.pruned} pruned (keep={keep})")


# --- stores and dream --------------------------------------------------------------------------------------------------


def apply(args: Args) -> None:
    from . import dream, lock

    text = given_text(args, "routes", "JSON (or - for stdin)")
    try:
        decisions = dream.check_decisions(parse_json(text))
    except ValueError as error:
        raise Wrong(f"--routes is no JSON: {error}") from None
    log = log_of(args)
    if decisions and not log.home.exists():
        raise Wrong(f"there is no home at {log.home.root}, so no record has these ids")
    with lock.guard(log.home, session.current(log.home, args["session"]), "apply"):
        out(str(dream.land(log, decisions)))


def run_dream(args: Args) -> None:
    from . import dream, lock
    from .boundary import Boundaries, find_config

    log = log_of(args)
    boundaries = Boundaries(find_config(args["config"]))
    classifiers = find_classifiers(args["classifier"], args["plugins-dir"])
    if args.on("dry-run"):
        decisions = dream.route(log, boundaries, classifiers)
        out(dump([{"id": id, "targets": targets} for id, targets in decisions.items()]))
        return
    if not log.home.exists():
        raise Refused(f"there is no home at {log.home.root}")
    with lock.guard(log.home, session.current(log.home, args["session"]), "dream"):
        decisions = dream.route(log, boundaries, classifiers)
        out(str(dream.land(log, decisions)))


def find_classifiers(name: str | None, plugins_dir: str | None) -> list[Any]:
    """The classifiers that can route records, or the one of this name; plugins are loaded here and nowhere else."""
    from wheelmem.contract import WheelmemError
    from wheelmem.plugins import load_plugins
    from wheelmem.settings import load_settings

    try:
        found = [c for c in load_plugins(plugins_dir).classifiers(load_settings()) if hasattr(c, "route")]
    except WheelmemError as error:
        raise Refused(str(error)) from None
    chosen = [c for c in found if name is None or c.name == name]
    if not chosen:
        have = ", ".join(sorted(c.name for c in found)) or "none"
        raise Refused(f"no classifier {name or ''!a} routes records; there are: {have}")
    return chosen


def get(args: Args) -> None:
    from . import dream

    text = dream.get(resolve_home(args), args.needed("store", "SEMANTIC|PROCEDURAL"))
    if args.on("hash"):
        out(dream.text_hash(text))
    else:
        sys.stdout.buffer.write(text)


def replace(args: Args) -> None:
    from . import dream, lock

    store = args.needed("store", "SEMANTIC|PROCEDURAL")
    name = dream.store_file(store)
    text = given_text(args, "body", "TEXT (or - for stdin)").encode("utf-8")
    home = resolve_home(args)
    with lock.guard(home, session.current(home, args["session"]), "replace"):
        size = dream.replace(home, store, text, args["if-match"])
    out(f"replaced {name} ({size} bytes)")


def run_audit(args: Args) -> int:
    from . import audit, dream
    from .boundary import find_config

    home = resolve_home(args)
    if args.on("owed"):
        out("owed" if audit.owed(Log(home)) else "clear")
        return 0
    allow = args["allow"] if args["allow"] is not None else home.path("audit-allow.txt")
    pins = audit.entries(allow) if args["allow"] is not None or os.path.exists(allow) else []
    keys = audit.project_keys(find_config(args["config"]))
    if args["keys"] is not None:
        keys += audit.entries(args["keys"])
    report = audit.audit(home, pins, keys)
    for name, size in report.over:
        out(f"{name}: {size}B over the {dream.CEILING}B watermark — depalimpsest owed")
    for found in report.findings:
        out(f"{found.file}:{found.line}: [{found.kind}] {found.match}")
    for pin in report.unused:
        print(f"stale pin (matches nothing — remove from allow file): {pin}", file=sys.stderr)
    if report.findings:
        out(
            f"audit: {len(report.findings)} finding(s) ({len(report.pinned)} pinned) — node-scoped content belongs in "
            "that node's AGENTS.md, not SEMANTIC/PROCEDURAL"
        )
        return 1
    out(f"audit: clean ({report.scanned} file(s) scanned, {len(report.pinned)} pinned)")
    return 0


# --- places ------------------------------------------------------------------------------------------------------------


def node(args: Args) -> None:
    from .boundary import Boundaries, find_config

    path = check_words("the path", args.words[0])
    found, basis = Boundaries(find_config(args["config"])).of_path(os.path.abspath(path))
    out(dump({"node": found, "basis": basis}) if args.on("json") else found)


def init(args: Args) -> None:
    home = resolve_home(args)
    name = args["name"] or home.name
    seeds = {
        "SEMANTIC.md": f"# {name}: semantic\n\nWhat I know to be so, wherever I am.\n",
        "PROCEDURAL.md": f"# {name}: procedural\n\nHow I go about things, wherever I am.\n",
        "EPISODIC.jsonl": "",
    }
    with home.exclusive():
        absent = [file for file in seeds if not os.path.lexists(home.path(file))]
        if absent:
            home.commit({file: seeds[file].encode("utf-8") for file in absent})
    out(f"init {home.root}")
    out(f"  seeded: {', '.join(absent) or '-'}")
    out(f"  present, untouched: {', '.join(file for file in seeds if file not in absent) or '-'}")


def run_home(args: Args) -> None:
    id = args["session"]
    if id is None:
        out(resolve_home(args).root)
        return
    homes = []
    if args["home"] is not None or args["name"] is not None or os.environ.get("AGENT_HOME"):
        homes.append(resolve_home(args))
    if os.path.isdir(agents_folder()):
        homes += [Home(os.path.join(agents_folder(), name)) for name in sorted(os.listdir(agents_folder()))]
    knowing = [home.root for home in homes if session.entry(home, id) is not None]
    if not knowing:
        raise Refused(f"no home knows session {id}")
    out(knowing[0])


def run_lock(args: Args) -> None:
    from . import lock

    action = args.words[0]
    home = resolve_home(args)
    if action == "acquire":
        out(lock.acquire(home, session.current(home, args["session"])))
    elif action == "release":
        out(lock.release(home, session.current(home, args["session"]), args.on("force")))
    elif action == "status":
        found = lock.find(home)
        out("free" if found is None else found.status())
    else:
        raise Wrong(f"lock takes acquire, release or status, not {action!a}")


def run_session(args: Args) -> None:
    action, *rest = args.words
    if rest and action != "status":
        raise Wrong(f"session {action}: unexpected {rest[0]!a}")
    home = resolve_home(args)
    stale = args.whole("stale", session.STALE_MS, " of milliseconds")
    if action == "list":
        for id in session.ids(home):
            out(dump(session.status(home, id, stale)))
        return
    if action == "register":
        owner = args.whole("pid", 0) if args["pid"] is not None else None
        new = session.named(args["session"]) or session.new_id()
        session.register(home, new, owner)
        out(f"registered {new}")
        return
    given = rest[0] if rest else session.named(args["session"])
    if action not in ("heartbeat", "release", "status"):
        raise Wrong(f"session takes register, heartbeat, release, status or list, not {action!a}")
    if given is None:
        raise Refused("which session? give --session ID or set $AGENT_SESSION_ID")
    if action == "heartbeat":
        session.heartbeat(home, given)
        out("ok")
    elif action == "release":
        out("released" if session.release(home, given) else "no session registered")
    else:
        told = session.status(home, given, stale)
        out(dump(told) if args.on("json") else str(told["state"]))


def run_migrate(args: Args) -> None:
    from . import migrate

    source, dest = args.words
    check_words("the path", source + dest)
    count = migrate.migrate(source, dest, args.on("dry-run"), args.on("overwrite"))
    out(f"dry-run: {count} items -> (nothing written)" if args.on("dry-run") else f"migrated: {count} items -> {dest}")


def install(args: Args) -> int:
    from shutil import which

    found = which("memory")
    if found is None:
        print(f"memory {version()} runs, but is not on PATH: add {os.path.dirname(sys.executable)} to it", file=sys.stderr)
        return 1
    out(f"memory {version()} runs, and is on PATH as {found}")
    return 0


def version() -> str:
    from wheelmem import __version__

    return __version__


_HOME = "home=DIR name=NAME"
VERBS = {
    "encode": Verb(encode, "", f"body=TEXT body-json=JSON tags=A,B scope=TAG session=ID path=FILE {_HOME}",
                   "Append a record to the log and print its id; --body - takes the text from stdin."),
    "read": Verb(read, "", f"count under=PATH for-session=ID scope=TAG stale=MS config=FILE path=FILE json {_HOME}",
                 "Print the records of the log, one JSON line each: those captured at or below a boundary, "
                 "those not of other live sessions."),
    "node": Verb(node, "PATH", "json config=FILE", "Print the boundary that a path belongs to."),
    "fold": Verb(fold, "", f"config=FILE path=FILE {_HOME}", "Print the boundary of each record, one JSON line each."),
    "dream": Verb(run_dream, "", f"classifier=NAME dry-run plugins-dir=DIR config=FILE session=ID path=FILE {_HOME}",
                  "Ask the classifiers where each record goes, land it there and compact the log; "
                  "--dry-run prints the routes instead."),
    "apply": Verb(apply, "", f"routes=JSON session=ID path=FILE {_HOME}",
                  'Land route decisions, [{"id", "targets": [{"store", "content"}]}]; - takes them from stdin.'),
    "drain": Verb(run_drain, "", f"keep=N completed-only for-session=ID stale=MS session=ID path=FILE {_HOME}",
                  "Move the log to an archive in .bak and keep the newest N (5) of those."),
    "get": Verb(get, "", f"store=SEMANTIC|PROCEDURAL hash {_HOME}", "Print a store, or the hash of its bytes."),
    "replace": Verb(replace, "", f"store=SEMANTIC|PROCEDURAL body=TEXT if-match=HASH session=ID {_HOME}",
                    "Put a text (- for stdin) in place of a whole store; the text before it stays in .bak."),
    "audit": Verb(run_audit, "", f"allow=FILE keys=FILE owed config=FILE {_HOME}",
                  "Look for scope markers in SEMANTIC and PROCEDURAL; exit 1 when there are any."),
    "lock": Verb(run_lock, "acquire|release|status", f"session=ID force {_HOME}",
                 "Take, give back or look at the lock that guards the stores."),
    "session": Verb(run_session, "register|heartbeat|release|status|list [ID]",
                    f"session=ID pid=PID stale=MS json {_HOME}", "Keep track of which sessions are live."),
    "migrate": Verb(run_migrate, "SRC.md DEST.jsonl", "dry-run overwrite", "Turn a markdown log into records."),
    "init": Verb(init, "", _HOME, "Make a home and the stores it lacks."),
    "home": Verb(run_home, "", f"session=ID {_HOME}", "Print which home is meant, or which one knows a session."),
    "install": Verb(install, "", "", "Check that the command runs and is on PATH; changes nothing."),
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run the command; its exit code. Arguments are those of this process unless given."""
    argv = sys.argv[1:] if argv is None else argv
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # somebody closed it: what is said there goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        code = _run([_utf8(arg) for arg in argv])
        sys.stdout.flush()
        return code
    except Refused as error:
        return _failed(str(error), error.code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is left to flush to whoever went away
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", 1)
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("--help", "-h"):
        sys.stdout.write(usage())
        return 0
    verb, *given = argv
    if verb == "--version":
        out(version())
        return 0
    if verb not in VERBS:
        raise Wrong(f"unknown verb {verb!a} (see memory --help)")
    args = parse(verb, given)
    if args is None:
        sys.stdout.write(usage(verb))
        return 0
    return VERBS[verb].run(args) or 0


def _failed(message: str, code: int) -> int:
    print(f"memory: {message}" if not message.startswith("lock held") else message, file=sys.stderr)
    return code


def _utf8(arg: str) -> str:
    try:
        return os.fsencode(arg).decode("utf-8")
    except UnicodeDecodeError:
        raise Wrong(f"this is no UTF-8: {arg!a}") from None


if __name__ == "__main__":
    sys.exit(main())

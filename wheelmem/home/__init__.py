"""An agent's home: its log of captures, the prose it reads whole, and the `memory` command over both.

Everything here imports the standard library only, and little of that until a verb needs it: `memory encode` runs on
every thought an agent keeps, so its start-up time is part of its behaviour.
"""

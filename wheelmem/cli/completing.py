"""Completion in bash of words that hold colons, as the wheel's ids do.

Bash parts words at colons and hands over the pieces; so the line itself is read here, and what stands before the last
colon is taken off again, since bash would otherwise write it twice.
"""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, add_completion_class
from click.shell_completion import split_arg_string as split

__all__ = ["WholeWords"]


@add_completion_class
class WholeWords(BashComplete):
    """Bash completion over the line up to the cursor."""

    name = "bash"
    source_template = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" prefix="" word type value
    word="${line##*[[:space:]=]}"
    if [[ $COMP_WORDBREAKS == *:* && $word == *:* ]]; then
        prefix="${word%%:*}:"
    fi
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$prefix"}") ;;
        esac
    done < <(env WHEELMEM_COMP_LINE="$line" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("WHEELMEM_COMP_LINE", "")
        words = split(line)
        incomplete = words.pop() if words and line and not line[-1].isspace() else ""
        return words[1:], incomplete

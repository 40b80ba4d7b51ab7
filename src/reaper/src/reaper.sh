# Ends what a program has left behind, once that program has ended. `lib.rs` beside this file says how it is used.
#
# The program holds the other end of the input. It writes lines there: first the mark, then words and paths with tabs
# between them. The end of the input is the end of the program.
trap '' HUP INT QUIT TERM
tab='	'
tries=500

marked() { # ids of the processes with the mark in their environment or command line; neither has it here
    printf '%s\n' "$mark" | grep -lsaF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline | cut -d/ -f3 | sort -u
}
again() { # again COMMAND: until it succeeds, for ten seconds at most
    left=$tries
    until "$@" || [ "$left" = 0 ]; do
        left=$((left - 1))
        sleep 0.02
    done
}
none_left() { # kills those that there are
    found=$(marked)
    [ -z "$found" ] && return
    kill -KILL $found 2>/dev/null
    false
}
removed() { rm -rf -- "$1" 2>/dev/null && [ ! -e "$1" ]; }

IFS= read -r mark || exit 0
lines=
while IFS= read -r line; do
    if [ "$line" = keep ]; then exit 0; fi
    lines="$lines$line
"
done
again none_left
printf '%s' "$lines" | while IFS=$tab read -r word script folder; do
    if [ "$word" = stop ]; then "$script" stop --dir "$folder" </dev/null; fi
done
printf '%s' "$lines" | while IFS=$tab read -r word folder; do
    if [ "$word" = remove ]; then again removed "$folder"; fi
done

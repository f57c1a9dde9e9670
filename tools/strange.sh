#!/usr/bin/env bash
# The quick tests where people are not: on Python 3.13, in a clone whose path has a space and an umlaut and whose files are
# private, without a terminal, in locale C and a far time zone. Root runs them as nobody, with no network but loopback.
# Without Python 3.13 the tests run here as they are.
set -uo pipefail
cd "$(dirname "$0")/.."
tests=(make test WORKERS="${WORKERS:-2}")

# Print the prefix of a Python 3.13 with venv, on PATH or of pyenv.
python313() {
    local each
    for each in python3.13 "$(pyenv root 2>/dev/null || echo "$HOME/.pyenv")"/versions/3.13*/bin/python; do
        "$each" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null || continue
        "$each" -c 'import sys; print(sys.base_prefix)'
        return
    done
    return 1
}

if ! prefix=$(python313); then
    echo "SKIPPED Python 3.13: there is none on PATH or in pyenv; the quick tests run on the Python of .venv"
    exec "${tests[@]}"
fi

folder=$(mktemp -d)
place="$folder/prüf umgebung"
trap 'rm -rf "$folder"' EXIT
(
    umask 077
    mkdir -p "$place/home" "$place/python" && git clone -q --no-hardlinks . "$place/kfbench" &&
        make -s -C "$place/kfbench" PYTHON="$prefix/bin/python3.13" setup &&
        { [ -z "${KFBENCH_GOLDEN:-}" ] || cp -r "$KFBENCH_GOLDEN" "$place/golden"; }
) || exit

umask 077
as=(env -i PATH="$PATH" HOME="$place/home" TMPDIR="$place/home" TERM=dumb LC_ALL=C TZ=Pacific/Chatham)
[ ! -d "$place/golden" ] || as+=(KFBENCH_GOLDEN="$place/golden")
tests+=(-C "$place/kfbench")
if [ "$(id -u)" -ne 0 ]; then
    "${as[@]}" "${tests[@]}"
    exit
fi
if ! unshare --mount --net ip link set lo up 2>/dev/null; then
    echo "SKIPPED an ordinary user without a network: root cannot make namespaces here, and runs these tests itself"
    "${as[@]}" "${tests[@]}"
    exit
fi

# Run "$@" as nobody, in namespaces of its own. There root's home has only the Python of `prefix`: root's home is closed to
# others, and pyenv keeps Python in it.
as_nobody() {
    ip link set lo up || return
    case $prefix in
    "$HOME"/*)
        mount --bind "$prefix" "$place/python" && mount -t tmpfs -o mode=755 none "$HOME" &&
            (umask 022 && mkdir -p "$prefix") && mount --bind "$place/python" "$prefix" || return
        ;;
    esac
    setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups "$@"
}
export prefix place
chown -R nobody: "$place" && chmod 755 "$folder" &&
    unshare --mount --net bash -c "$(declare -f as_nobody); as_nobody \"\$@\"" bash "${as[@]}" "${tests[@]}"

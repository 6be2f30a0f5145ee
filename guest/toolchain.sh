#!/bin/sh
# Sees to it that this machine can compile for wasm32-unknown-unknown.
#
# The build itself looks for what is installed, in the order used here (see
# host/build/guest.rs); this script only installs what is missing, and says in
# one line which way it found:
#
#   rustup  the target's library of the active compiler, by `rustup target add`
#   debian  Debian's own rustc-web, rust-web-src and lld, by apt-get
#
# LOOP_STATE_TOOLCHAIN=rustup or =debian leaves only that way.
set -eu

target=wasm32-unknown-unknown
packages='rustc-web rust-web-src lld'
way=${LOOP_STATE_TOOLCHAIN:-any}

case $way in
any | rustup | debian) ;;
*)
    echo "toolchain: LOOP_STATE_TOOLCHAIN is \`$way\`; it takes \`rustup\` or \`debian\`" >&2
    exit 1
    ;;
esac

# What a failed attempt had to say, shown only when no attempt works.
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT

have_target() {
    library=$(rustc --print target-libdir --target "$target" 2>>"$notes") && [ -d "$library" ]
}

add_target() {
    command -v rustup >/dev/null 2>&1 || return 1
    # A network that swallows packets must not hang the build, where the system
    # has the means (macOS has no `timeout`).
    bound=
    if command -v timeout >/dev/null 2>&1; then bound='timeout 60'; fi
    $bound rustup target add "$target" >>"$notes" 2>&1 && have_target
}

have_packages() {
    [ -x /usr/bin/rustc ] && [ -e /usr/lib/rustlib/src/rust/library/Cargo.toml ] &&
        [ -x /usr/bin/wasm-ld ] && dpkg -s $packages >/dev/null 2>&1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        # Without a terminal a password cannot be asked for: fail instead.
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else
        return 1
    fi
}

add_packages() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root apt-get update >>"$notes" 2>&1 || return 1
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $packages >>"$notes" 2>&1 || return 1
    have_packages
}

found() {
    echo "toolchain: $1"
    exit 0
}

# What is there comes before any download.
if [ "$way" != debian ] && have_target; then found "rustup ($target is installed: $library)"; fi
if [ "$way" != rustup ] && have_packages; then found "debian ($packages are installed)"; fi
if [ "$way" != debian ] && add_target; then found "rustup ($target was added: $library)"; fi
if [ "$way" != rustup ] && add_packages; then found "debian ($packages were installed)"; fi

cat "$notes" >&2
case $way in
debian) command="apt-get install $packages" ;;
*) command="rustup target add $target" ;;
esac
echo "toolchain: nothing here compiles for $target; run \`$command\` where there is a network, then try again" >&2
exit 1

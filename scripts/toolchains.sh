# shellcheck shell=bash disable=SC2031
# Sourced by the scripts beside it: tools that only tests need, installed by name and pinned version into the
# user's cache, so that neither the repository nor the system's own Node and Python change.
#
# Each function prints the folder that it prepared; what the installers say goes to stderr.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/host

digest() { sha256sum | cut -c1-16; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

apt_install() {
    as_root apt-get update -q >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2
}

# installed KIND PACKAGE...: the folder that holds these packages, filled by install_KIND unless an earlier run came to its
# end. The lock makes a second script wait for the first instead of installing over it.
installed() {
    local kind=$1 folder
    shift
    folder=$cache/$kind/$(printf '%s\n' "$@" | digest)
    mkdir -p "$folder"
    (
        flock 9
        [ -e "$folder/.complete" ] || { "install_$kind" "$folder" "$@" >&2 && touch "$folder/.complete"; }
    ) 9>"$folder/.lock" || return
    echo "$folder"
}

install_npm() {
    local folder=$1
    shift
    command -v npm >/dev/null || apt_install nodejs npm || return
    # Its own package.json keeps npm from installing into a project above the cache.
    echo '{"private": true}' >"$folder/package.json"
    npm install --prefix "$folder" --no-package-lock --no-audit --no-fund --loglevel=error "$@"
}

install_python() {
    local folder=$1
    shift
    python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install python3 python3-venv || return
    python3 -m venv --clear "$folder/venv" || return
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# node24: the folder with `node` and `npm` for PATH. Distributions still ship older ones: the inspector wants 22.19 or later,
# and an npm under Node 18 silently leaves out the native parts of packages that want more.
node24() {
    local folder
    folder=$(installed npm node@24.21.0 npm@11.19.1) && echo "$folder/node_modules/.bin"
}

# npm_tools PACKAGE@VERSION...: the node_modules with these packages.
npm_tools() {
    local node folder
    node=$(node24) || return
    folder=$(PATH=$node:$PATH && installed npm "$@") && echo "$folder/node_modules"
}

# python_tools PACKAGE==VERSION...: the virtual environment with these packages.
python_tools() {
    local folder
    folder=$(installed python "$@") && echo "$folder/venv"
}

# Unpacked and not installed: a package of a server would start it.
install_deb() {
    local folder=$1
    shift
    cd "$folder" || return
    apt-get download -q "$@" || { as_root apt-get update -q && apt-get download -q "$@"; } || return
    for package in ./*.deb; do dpkg -x "$package" . || return; done
}

# docker_registry: the folder with `docker-registry` for PATH, which the tests of `sources` push to and pull from.
docker_registry() {
    local found folder
    if found=$(command -v docker-registry); then
        dirname "$found"
    else
        folder=$(installed deb docker-registry) && echo "$folder/usr/bin"
    fi
}

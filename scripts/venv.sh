# Sourced by the other scripts: steps into the repository and leaves a ready .venv behind.
# Packages are installed again only when requirements.lock changed, takopi itself only when
# pyproject.toml did.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

takopi_venv() {
    local python=${PYTHON:-python3} packages project
    packages=$(cat requirements.lock scripts/venv.sh | cksum)
    project=$(cksum < pyproject.toml)
    if [ "$(cat .venv/packages.stamp 2>/dev/null)" != "$packages" ]; then
        if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "takopi needs Python 3.11 or newer, and '$python' is not." \
                 "Name one that is: PYTHON=python3.12 $0" >&2
            return 2
        fi
        echo "setting up .venv ..." >&2
        if ! "$python" -m venv .venv; then
            rm -rf .venv
            echo "could not make .venv; on Debian: apt-get install python3-venv" >&2
            return 2
        fi
        .venv/bin/python -m pip --disable-pip-version-check install --quiet \
            --require-hashes --no-deps --only-binary :all: -r requirements.lock || return 2
        rm -f .venv/project.stamp
        printf '%s\n' "$packages" > .venv/packages.stamp
    fi
    if [ "$(cat .venv/project.stamp 2>/dev/null)" != "$project" ]; then
        .venv/bin/python -m pip --disable-pip-version-check install --quiet \
            --no-deps --no-build-isolation --editable . || return 2
        printf '%s\n' "$project" > .venv/project.stamp
    fi
}

takopi_venv || exit $?
export PATH="$PWD/.venv/bin:$PATH"

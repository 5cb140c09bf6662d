#!/bin/sh
# The test of the TypeScript client compiles and runs it. Install Debian's Node and the packages where that is possible.
cd "$(dirname "$0")/../clients/typescript" || exit 1
if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing nodejs and npm for the test of the TypeScript client"
    apt-get install -y -qq nodejs npm >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq nodejs npm >/dev/null 2>&1; }
fi
installed=node_modules/.package-lock.json
if command -v npm >/dev/null && { [ ! -e $installed ] || [ package-lock.json -nt $installed ]; }; then
    echo "installing the packages of the TypeScript client"
    npm ci --no-audit --no-fund --loglevel=error && touch $installed
fi
[ -e $installed ] ||
    echo "npm or its packages are missing: the test of the TypeScript client is skipped, and fails where CI is set"
exit 0

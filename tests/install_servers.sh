#!/bin/sh
# Stores on PostgreSQL, and streams of Redis, are tested against real servers. Install Debian's where that is possible;
# else say what that means.
has_postgres() { command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; }
has_redis() { command -v redis-server >/dev/null; }
install() {
    echo "installing $1 for the tests"
    # Debian would start the servers, which nobody asked for: the tests start their own.
    policy=/usr/sbin/policy-rc.d
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && ours=1; }
    apt-get install -y -qq "$1" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq "$1" >/dev/null 2>&1; }
    [ -z "$ours" ] || rm -f "$policy"
    ours=
}
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    has_postgres || install postgresql
    has_redis || install redis-server
fi
has_postgres ||
    echo "PostgreSQL is missing: tests of stores on it are skipped, and fail where CI is set; apt-get install postgresql"
has_redis ||
    echo "Redis is missing: tests of its streams are skipped, and fail where CI is set; apt-get install redis-server"
exit 0

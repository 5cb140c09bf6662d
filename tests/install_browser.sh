#!/bin/sh
# The tests of the page drive a real browser. Install Debian's where that is possible; else say what that means.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium for the tests of the page"
    apt-get install -y -qq chromium >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1; }
fi
command -v chromium >/dev/null ||
    echo "chromium is missing: the tests in tests/page are skipped, and fail where CI is set; apt-get install chromium"
exit 0

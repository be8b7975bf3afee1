#!/bin/sh
# Installs Debian's Chromium for the browser tests where that is possible, and says so where it is not.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo -n"; fi
    if $as_root true 2>/dev/null; then
        echo "Installing Chromium for the browser tests ..."
        $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq chromium >/dev/null && exit 0
    fi
fi
echo "No Chromium found and none could be installed: the browser tests will be skipped." \
     "Install the package 'chromium' to run them."

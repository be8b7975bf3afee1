#!/bin/sh
# Installs Debian's Chromium for the browser tests where that is possible, and says so where it is not.
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
install() { DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "$@" >/dev/null; }
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo -n"; fi
    if $as_root true 2>/dev/null; then
        echo "Installing Chromium for the browser tests ..."
        $as_root apt-get update -qq
        install --no-install-recommends chromium-headless-shell fonts-liberation || install chromium && exit 0
    fi
fi
echo "No Chromium found and none could be installed: the browser tests will be skipped." \
     "Install the package 'chromium-headless-shell' to run them."

#!/usr/bin/env bash
# Put a Docker engine into one archive, for a host that reaches neither a package server nor a registry.
# Run it on a Debian or Ubuntu machine of the same architecture that has the package docker.io.
# Usage: pack_engine.sh ENGINE.tar.xz
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
archive=$(realpath -m "$1")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/lib" "$(dirname "$archive")"

find_program() {
  PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$1" ||
    { echo "$1 is not here; apt-get install docker.io brings it" >&2; exit 3; }
}

for name in dockerd containerd containerd-shim-runc-v2 runc tini-static docker; do
  cp -L "$(find_program "$name")" "$stage/bin/"
done
ln -s tini-static "$stage/bin/docker-init"   # what the engine calls when a container asks for an init

# Libraries travel along, except libc and its family: those must be the host's own.
for program in dockerd runc docker; do ldd "$stage/bin/$program" || true; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  { grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so' || true; } |
  xargs -r cp -L -t "$stage/lib"

strip "$stage"/bin/{dockerd,containerd,docker} 2> /dev/null || true
tar -C "$stage" -c . | xz -T0 > "$archive"
du -h "$archive"

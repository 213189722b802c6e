#!/usr/bin/env bash
# Unpack what pack_engine.sh made and start the engine, as root, without systemd, a bridge or iptables.
# Builds then use the host's network and trials none, which is what the kit asks for anyway.
# Usage: start_engine.sh ENGINE.tar.xz [FOLDER]     (stop it: kill $(cat FOLDER/dockerd.pid))
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
archive=$1 home=${2:-$HOME/docker-engine}
mkdir -p "$home"
tar -C "$home" -xJf "$archive"
export PATH=$home/bin:$PATH

if ! docker info > /dev/null 2>&1; then
  LD_LIBRARY_PATH=$home/lib setsid dockerd \
    --bridge=none --iptables=false --ip6tables=false \
    --data-root "$home/data" --pidfile "$home/dockerd.pid" \
    --exec-opt native.cgroupdriver=cgroupfs > "$home/dockerd.log" 2>&1 < /dev/null &
  for _ in $(seq 150); do
    docker info > /dev/null 2>&1 && break
    sleep 0.2
  done
fi

docker info --format 'Docker {{.ServerVersion}} ({{.Driver}}) answers' ||
  { echo "the engine did not start; the end of $home/dockerd.log:" >&2; tail -n 20 "$home/dockerd.log" >&2; exit 3; }
echo "put the client on PATH: export PATH=$home/bin:\$PATH"

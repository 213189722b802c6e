#!/usr/bin/env bash
# The whole evidence of this folder, on a GPU host without a network that docs/offline-gpu-host.md has prepared.
#
#     docs/evidence/h100/run.sh OUT      # from the repository's root, with ~/docker-engine/bin on PATH
#
# OUT gets one file a step with the command, what it printed and its wall time. TRIALS makes it smaller.
set -uo pipefail
out=$(mkdir -p "$1" && realpath "$1")
here=docs/evidence/h100
trials=${TRIALS:-400}
repro=.venv/bin/repro
all=(--matrix $here/matrix.yaml)
cells=("${all[@]}" --only "torch2.11.0-*")
# Slim wheels have no nvdisasm, and what is compiled here is this repository's own code.
text=() && command -v nvdisasm > /dev/null && text=(--nvdisasm nvdisasm)
own=(--matrix $here/matrix.yaml --only "torch2.11.0-triton3.6.0-cu130-py312")

step() { # step NAME COMMAND...
  local name=$1 began=$SECONDS
  shift
  { echo "\$ ${*//$out\//}"; "$@" 2> "$out/$name.err"; echo "(exit $?)"; } > "$out/$name.txt"
  echo "$name $((SECONDS - began)) s $(tail -1 "$out/$name.txt")" | tee -a "$out/times.txt"
}

began=$SECONDS
step doctor $repro doctor "${cells[@]}"
step kit .venv/bin/python benchmarks/kit.py "${cells[@]}"

# What the search of the benchmark has found; then every cell.
step bisect-triton $repro bisect "${cells[@]}" --axis triton --trials "$trials"
step matrix $repro matrix "${cells[@]}" --trials "$trials" --jobs 6
step again $repro matrix "${cells[@]}" --trials "$trials" --jobs 6

# Side by side on the one GPU, each with a ledger of its own; what is in .repro goes into the report. The
# kernel caches in there belong to the containers' user: only a copy with its owners can be written to again.
cp -a .repro .repro-minimize
cp -a .repro .repro-replay
{
  step inspect $repro inspect "${own[@]}" --seconds 60
  step diagnose $repro diagnose "${own[@]}" --budget 6m
  step verify-fix $repro verify-fix "${own[@]}" --patch $here/aten.patch
} &
for test in float32-{border-True,zeros-False,zeros-True} float64-{border-False,border-True,zeros-False,zeros-True}; do
  step "matrix-$test" $repro matrix "${cells[@]}" --trials "$trials" --jobs 6 --state .repro-others \
    --test "test_backward[$test]"
done &
step suite .venv/bin/python -m tests.gpu.in_every_cell --matrix $here/matrix.yaml --only 'torch2.11.0-*-cu130-py312' --jobs 3 &
{
  step minimize $repro minimize "${own[@]}" --budget 6m --state .repro-minimize
} &
{
  step replay $repro replay "${cells[@]}" --times 5 --fresh 0 --state .repro-replay
  step factors $repro factors "${own[@]}" --trials 100 --budget 5m --state .repro-replay
} &
{
  step kernels $repro kernels "${cells[@]}" "${text[@]}" --state .repro-kernels \
    --cell 'torch2.11.0-triton3.6.0-cu130-py312' --against 'torch2.11.0-triton3.9.0-*'
  step kernels-fma $repro kernels "${own[@]}" "${text[@]}" --state .repro-kernels --env TRITON_DEFAULT_FP_FUSION=0
  .venv/bin/python $here/history.py .history > "$out/culprit.txt"
  step bisect-commits $repro bisect "${own[@]}" --repo .history --state .repro-commits \
    --old "$(git -C .history rev-list --max-parents=0 HEAD)" --new main
  step bisect-ptxas $repro bisect "${cells[@]}" --axis ptxas --state .repro-ptxas
} &
wait

# Timed, so alone on the machine again.
step kernels-measured $repro kernels "${own[@]}" "${text[@]}" --measure
step kernels-ncu .venv-torch/bin/repro kernels "${own[@]}" --measure --engine host --state .repro-host

step matrix-torch $repro matrix "${all[@]}" --trials "$trials" --jobs 6
step bisect-torch $repro bisect "${all[@]}" --axis torch --trials "$trials"
cp .repro-minimize/minimized.json .repro/
step merge $repro merge .repro-others
step report $repro report "${all[@]}" --out "$out/report"
step status $repro status
echo "all $((SECONDS - began)) s" | tee -a "$out/times.txt"

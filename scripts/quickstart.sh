#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a model trained by several processes: installs what is missing, builds
# examples/train_digits and runs it, fast and then reproducible. Arguments are handed to train_digits,
# which then runs once.
#   scripts/quickstart.sh [ARGUMENTS OF train_digits]      --ranks 3, say; scripts/quickstart.sh -- --help lists them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_missing "${build_tools[@]}"

say "building examples/train_digits"
cmake --preset release >/dev/null
build --preset release --target train_digits

[ "${1:-}" != -- ] || shift
if [ $# -gt 0 ]; then
  exec build/release/examples/train_digits "$@"
fi
say "training, gradients summed as floats"
build/release/examples/train_digits
say "training, gradients summed exactly: the same model on any number of ranks"
build/release/examples/train_digits --reproducible

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a model trained by several processes: installs what is missing, builds
# examples/train_digits and runs it. Arguments are handed to train_digits.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_missing "${build_tools[@]}"

say "building examples/train_digits"
cmake --preset release >/dev/null
cmake --build --preset release -j "$(jobs_count)" --target train_digits

say "running it"
exec build/release/examples/train_digits "$@"

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts: moves to the project's root and installs missing Debian packages.
# Never calls apt when everything is there.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

say() { printf '\n== %s\n' "$*"; }

jobs_count() { echo "${COLLX_JOBS:-$(nproc)}"; }

# build ARGUMENT...   cmake --build, with as many jobs. Compilers take a twelfth less time where their memory may have pages
# of 2 MiB (glibc's malloc asks for them then; elsewhere it changes nothing).
build() { GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1} cmake --build "$@" -j "$(jobs_count)"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "error: '$*' needs root, and there is no sudo. Run this script once as root, or install the" \
         "packages named above by hand." >&2
    exit 1
  fi
}

is_there() {
  case "$1" in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# install_missing CHECK=PACKAGE...   CHECK is a command or an absolute path that PACKAGE provides.
install_missing() {
  local pair packages=()
  for pair in "$@"; do
    is_there "${pair%%=*}" || packages+=("${pair#*=}")
  done
  [ ${#packages[@]} = 0 ] && return 0
  say "installing: ${packages[*]}"
  if ! command -v apt-get >/dev/null; then
    echo "error: this script installs with apt-get, which is not here. Install by hand what Debian calls:" \
         "${packages[*]}" >&2
    exit 1
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${packages[@]}" >/dev/null
}

# Newer than what Debian 12 came with: it has it among its security updates. Elsewhere it may not be to be had; then apt says
# so, and this fails; it is asked once.
no_clang=build/no-clang-22
install_clang() {
  clang_sanitizes && return
  [ ! -e $no_clang ] || return 1
  (install_missing clang++-22=clang-22 /usr/lib/llvm-22/lib/clang/22/lib/linux=libclang-rt-22-dev) || true
  clang_sanitizes && return
  mkdir -p build && touch $no_clang
  echo "apt is not asked for clang-22 again while $no_clang is there" >&2
  return 1
}

# Whether clang++-22 is there and has the run-time libraries of the sanitizers, which are a package of their own.
clang_sanitizes() {
  echo 'int main() {}' | clang++-22 -x c++ -fsanitize=address,undefined -o /dev/null - 2>/dev/null
}

build_tools=(g++=g++ cmake=cmake ninja=ninja-build)
test_tools=("${build_tools[@]}" /usr/include/doctest/doctest.h=doctest-dev pkg-config=pkg-config python3=python3
  valgrind=valgrind ip=iproute2 /usr/include/hwloc.h=libhwloc-dev
  /usr/include/openssl/hmac.h=libssl-dev)
